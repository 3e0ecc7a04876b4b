# Calls of the system that are made without Python's objects where the modules are compiled.

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void *room, size_t size, int flags)
    ssize_t send(int fd, const void *data, size_t size, int flags)

cdef extern from "<errno.h>" nogil:
    int errno
    int EAGAIN
    int EWOULDBLOCK
    int EINTR

# Those that Linux alone has in this form. Elsewhere Python's own are called, or none.
cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <stdint.h>
    #include <sys/socket.h>
    #include <sys/types.h>
    #ifdef __linux__
    #include <sched.h>
    #include <sys/epoll.h>
    #include <sys/sendfile.h>
    #include <sys/uio.h>
    #include <time.h>
    #define OTTLA_LINUX 1

    static inline long long ottla_now_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
    }

    static inline void ottla_yield(void) { sched_yield(); }

    static inline ssize_t ottla_send_file(int fd, int file, long long position, size_t size) {
        off_t offset = (off_t)position;
        return sendfile(fd, file, &offset, size);
    }

    static inline int ottla_wait(int epoll, void *events, int count_max, int timeout_ms) {
        return epoll_wait(epoll, (struct epoll_event *)events, count_max, timeout_ms);
    }

    typedef struct epoll_event ottla_event;
    #define ottla_event_fd(event) ((event).data.fd)
    #define ottla_event_bits(event) ((int)(event).events)
    #else
    #define OTTLA_LINUX 0
    static inline long long ottla_now_ns(void) { return 0; }
    static inline void ottla_yield(void) {}
    typedef struct { int fd; } ottla_event;
    #define ottla_event_fd(event) ((event).fd)
    #define ottla_event_bits(event) 0

    static inline ssize_t ottla_send_file(int fd, int file, long long position, size_t size) {
        errno = ENOSYS;
        return -1;
    }

    static inline int ottla_wait(int epoll, void *events, int count_max, int timeout_ms) {
        errno = ENOSYS;
        return -1;
    }
    #endif

    #if defined(__linux__) && defined(RWF_NOWAIT)
    #define OTTLA_PREADV2 1
    /* A byte of each step, and the last one. What cannot be told counts as being there. */
    static inline int ottla_is_cached(int fd, long long position, long long end, long long step) {
        char byte;
        struct iovec one = {.iov_base = &byte, .iov_len = 1};
        for (; position < end; position += step)
            if (preadv2(fd, &one, 1, (off_t)position, RWF_NOWAIT) < 0) return errno != EAGAIN;
        return preadv2(fd, &one, 1, (off_t)(end - 1), RWF_NOWAIT) >= 0 || errno != EAGAIN;
    }
    #else
    #define OTTLA_PREADV2 0
    static inline int ottla_is_cached(int fd, long long position, long long end, long long step) { return 1; }
    #endif

    /* What has arrived, as bytes: up to `size`, and up to `size_max` when that much came and begins with a frame
     * that is not longer, so that several frames come whole. More than `copied_max` is received where it stays.
     * None: nothing yet. The interpreter is not given up, so there is one room for all. */
    static PyObject *ottla_room = NULL;

    static inline PyObject *ottla_receive(int fd, Py_ssize_t size, Py_ssize_t size_max, Py_ssize_t copied_max) {
        PyObject *taken;
        unsigned char *room;
        ssize_t count, more;
        if (!ottla_room && !(ottla_room = PyBytes_FromStringAndSize(NULL, size_max))) return NULL;
        room = (unsigned char *)PyBytes_AS_STRING(ottla_room);
        count = recv(fd, room, (size_t)size, 0);
        if (count < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return PyErr_SetFromErrno(PyExc_OSError);
            Py_RETURN_NONE;
        }
        if (count == size) {
            uint32_t length = (uint32_t)room[0] << 24 | (uint32_t)room[1] << 16 | (uint32_t)room[2] << 8 | room[3];
            if (length <= (uint32_t)size) {
                more = recv(fd, room + count, (size_t)(size_max - count), 0);
                if (more > 0) count += more; /* an end or an error is met again */
            }
        }
        if (count <= copied_max) return PyBytes_FromStringAndSize((char *)room, count);
        taken = ottla_room;
        ottla_room = NULL;
        if (count < size_max) _PyBytes_Resize(&taken, count);
        return taken;
    }
    """
    object receive "ottla_receive"(int fd, Py_ssize_t size, Py_ssize_t size_max, Py_ssize_t copied_max)
    const int HAS_EPOLL "OTTLA_LINUX"
    const int HAS_SENDFILE "OTTLA_LINUX"
    const int HAS_PREADV2 "OTTLA_PREADV2"
    ctypedef struct Event "ottla_event":
        pass
    int event_fd "ottla_event_fd"(Event event) nogil
    int event_bits "ottla_event_bits"(Event event) nogil
    ssize_t send_file "ottla_send_file"(int fd, int file, long long position, size_t size) nogil
    int wait_for_events "ottla_wait"(int epoll, Event *events, int count_max, int timeout_ms) nogil
    long long now_ns "ottla_now_ns"() nogil
    void let_others_run "ottla_yield"() nogil
    bint is_cached "ottla_is_cached"(int fd, long long position, long long end, long long step) nogil
