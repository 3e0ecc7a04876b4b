cimport cython


@cython.freelist(64)
@cython.final
cdef class FrameWriter:
    cdef bytearray _room
    cdef unsigned char _start[256]
    cdef unsigned char *_octets
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t position

    @cython.locals(is_first=cython.bint)
    cdef void _reserve(self, Py_ssize_t size) except *
    cdef void int8(self, long long value) except *
    @cython.locals(at=Py_ssize_t)
    cdef void int16(self, long long value) except *
    @cython.locals(at=Py_ssize_t)
    cdef void int32(self, long long value) except *
    cdef void int64(self, long long value) except *
    cdef void uvarint(self, long long value) except *
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t)
    cdef void raw(self, bytes value) except *
    @cython.locals(encoded=bytes)
    cdef void string(self, str value, bint compact) except *
    cdef void count(self, long long value, bint compact) except *
    @cython.locals(end=Py_ssize_t)
    cdef bytes frame(self, Py_ssize_t behind=*)
