cimport cython


cdef class EpollPoller:
    cdef object _epoll
    cdef int _fd

    cpdef register(self, int fd, int interest)
    cpdef modify(self, int fd, int interest)
    cpdef unregister(self, int fd)
    cpdef list poll(self, object timeout_ms)
    cpdef close(self)


@cython.locals(count=cython.int, at=cython.int)
cdef list _wait(int epoll, int timeout_ms)
