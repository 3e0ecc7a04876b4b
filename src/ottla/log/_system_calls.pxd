# What Python's `os` does not have. Linux alone has it.

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <unistd.h>
    #ifdef __linux__
    #define OTTLA_SYNCFS 1
    static inline int ottla_syncfs(int fd) { return syncfs(fd) ? errno : 0; }
    static inline int ottla_fdatasync(int fd) { return fdatasync(fd) ? errno : 0; }
    #else
    #define OTTLA_SYNCFS 0
    static inline int ottla_syncfs(int fd) { return ENOSYS; }
    static inline int ottla_fdatasync(int fd) { return ENOSYS; }
    #endif
    """
    const int HAS_SYNCFS "OTTLA_SYNCFS"
    int sync_filesystem "ottla_syncfs"(int fd) nogil
    int sync_data "ottla_fdatasync"(int fd) nogil
