cimport cython


cdef class FrameCutter:
    cdef public Py_ssize_t frame_bytes_max
    cdef public bint cuts_by_length
    cdef public bytes _data
    cdef public Py_ssize_t _position
    cdef Py_ssize_t _length
    cdef bytearray _buffer
    cdef Py_ssize_t _filled
    cdef object _view
    cdef object _spares
    cdef bint _copies

    @cython.locals(size=Py_ssize_t)
    cpdef object one_frame(self, bytes data)
    cpdef bint is_empty(self) except -1
    cpdef list feed(self, bytes data, Py_ssize_t count_max=*)
    cpdef list cut(self, Py_ssize_t count_max=*)
    cpdef object wanted(self)
    cpdef list received(self, Py_ssize_t count)
    cdef bytes _fill(self, bytes data, list frames)
    cdef void _begin_buffer(self, Py_ssize_t length, object start) except *
    cdef void _release_view(self) except *
    cdef void _refuse(self, Py_ssize_t length, bytes start) except *


cdef long long _length_at(bytes data) except? -1

cdef void _grow(bytearray buffer, Py_ssize_t size) except *
