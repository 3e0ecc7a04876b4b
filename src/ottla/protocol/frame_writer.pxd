cimport cython


@cython.final
cdef class FrameWriter:
    cdef bytearray _room
    cdef unsigned char _start[256]
    cdef unsigned char *_octets
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t position

    cdef bint _reserve(self, Py_ssize_t size) except -1
    @cython.locals(is_first=cython.bint)
    cdef void _grow(self, Py_ssize_t size) except *
    cdef bint int8(self, long long value) except -1
    @cython.locals(at=Py_ssize_t)
    cdef bint int16(self, long long value) except -1
    @cython.locals(at=Py_ssize_t)
    cdef bint int32(self, long long value) except -1
    cdef bint int64(self, long long value) except -1
    cdef bint uvarint(self, long long value) except -1
    @cython.locals(at=Py_ssize_t, size=Py_ssize_t)
    cdef bint raw(self, bytes value) except -1
    @cython.locals(encoded=bytes)
    cdef bint string(self, str value, bint compact) except -1
    cdef bint count(self, long long value, bint compact) except -1
    @cython.locals(end=Py_ssize_t)
    cdef bytes frame(self, Py_ssize_t behind=*)
