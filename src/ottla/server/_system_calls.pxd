# Calls of the system that `socket_calls` makes itself where it is compiled.

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void *room, size_t size, int flags)
    ssize_t send(int fd, const void *data, size_t size, int flags)

cdef extern from "<errno.h>" nogil:
    int errno
    int EAGAIN
    int EWOULDBLOCK
    int EINTR
