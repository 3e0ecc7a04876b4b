cimport cython

cdef bytes _MARKER
cdef Py_ssize_t _FRAME_BYTES


@cython.locals(size=Py_ssize_t, crc=cython.uint, frame=bytes, p=cython.p_uchar)
cpdef bytes encode_frame(bytes payload, long long tag)
