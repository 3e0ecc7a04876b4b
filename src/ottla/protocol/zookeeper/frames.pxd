from ottla.protocol.frames cimport FrameCutter


cdef class OpeningCutter(FrameCutter):
    cdef bint _is_begun
    cdef bint _is_word

    cpdef list feed(self, bytes data, Py_ssize_t count_max=*)
