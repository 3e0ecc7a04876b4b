cimport cython


cpdef object receive_now(object sock, int fd)

@cython.locals(count=Py_ssize_t)
cpdef Py_ssize_t receive_into_now(object sock, int fd, object room) except -2

@cython.locals(count=Py_ssize_t)
cpdef Py_ssize_t send_now(object sock, int fd, object data, int flags) except -1

@cython.locals(count=Py_ssize_t)
cpdef Py_ssize_t send_file_now(int fd, int file_fd, long long position, long long size) except -2

cdef bint _must_wait() except -1
