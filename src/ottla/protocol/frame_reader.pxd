cimport cython


@cython.final
cdef class FrameReader:
    cdef object _frame
    cdef const unsigned char *_octets
    cdef Py_ssize_t _end
    cdef Py_ssize_t position
    cdef bint is_broken

    cdef bint _has(self, Py_ssize_t size) noexcept
    @cython.locals(at=Py_ssize_t, value=cython.longlong)
    cdef long long int8(self) noexcept
    @cython.locals(at=Py_ssize_t, value=cython.longlong)
    cdef long long int16(self) noexcept
    @cython.locals(at=Py_ssize_t, value=cython.longlong)
    cdef long long int32(self) noexcept
    @cython.locals(high=cython.longlong)
    cdef long long int64(self) noexcept
    @cython.locals(value=cython.longlong, byte=cython.longlong, shift=cython.int)
    cdef long long uvarint(self) noexcept
    @cython.locals(value=cython.longlong)
    cdef long long count(self, bint compact, long long limit) noexcept
    @cython.locals(size=cython.longlong)
    cdef str string(self, bint compact)
    @cython.locals(size=cython.longlong)
    cdef str nullable_string(self, bint compact)
    @cython.locals(at=Py_ssize_t)
    cdef str _text(self, long long size)
    @cython.locals(at=Py_ssize_t)
    cdef bytes uuid(self)
    @cython.locals(size=cython.longlong, at=Py_ssize_t)
    cdef object nullable_view(self, bint compact)
    cdef void no_tags(self, bint compact) noexcept
