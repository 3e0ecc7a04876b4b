cpdef int _call_directly(int fd) except -1
