cimport cython

from ottla.log.disk_lane cimport DiskWork


cdef class BlockAppend(DiskWork):
    cdef object _handle
    cdef int _fd
    cdef object _room
    cdef char *_address
    cdef long long _known_end
    cdef long long _position
    cdef Py_ssize_t _count
    cdef long long _end
    cdef bint _is_refused

    @cython.locals(position=cython.longlong, at=Py_ssize_t, end=Py_ssize_t, count=Py_ssize_t, content=bytes)
    cpdef bint prepare(self, object chunks, long long filled_end) except -1

    @cython.locals(done=Py_ssize_t, written=Py_ssize_t)
    cdef int perform(self) noexcept nogil

    cpdef bint settle(self, int error) except -1
