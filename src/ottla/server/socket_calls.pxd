cimport cython


cdef char *_room

@cython.locals(count=Py_ssize_t)
cpdef object receive_now(object sock, int fd)

@cython.locals(count=Py_ssize_t)
cpdef Py_ssize_t send_now(object sock, int fd, object data, int flags) except -1

cdef bint _must_wait() except -1
