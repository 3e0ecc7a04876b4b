# Calls of the system that `direct_append` and `disk_lane` make themselves where they are compiled.

cdef extern from "<unistd.h>" nogil:
    ssize_t read(int fd, void *room, size_t size)
    ssize_t write(int fd, const void *data, size_t size)
    ssize_t pwrite(int fd, const void *data, size_t size, long long position)

cdef extern from "<errno.h>" nogil:
    int errno
    int EINTR
    int EIO

cdef extern from * nogil:
    void all_is_written "__sync_synchronize" ()
