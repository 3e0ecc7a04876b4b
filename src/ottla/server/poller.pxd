cimport cython

from ottla.server cimport _system_calls as system


cdef long long _LOOKING_NS_MAX


cdef class EpollPoller:
    cdef object _epoll
    cdef int _fd
    cdef long long _usual_wait_ns
    cdef bint _was_alone

    cpdef register(self, int fd, int interest)
    cpdef modify(self, int fd, int interest)
    cpdef unregister(self, int fd)
    cpdef list poll(self, object timeout_ms)
    cpdef close(self)

    @cython.locals(count=cython.int, at=cython.int)
    cdef list _wait(self, int timeout_ms)

    @cython.locals(began_ns=cython.longlong, waited_ns=cython.longlong, count=cython.int)
    cdef int _await(self, system.Event *events, int timeout_ms) noexcept nogil
