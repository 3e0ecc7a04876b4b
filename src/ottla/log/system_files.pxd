# SystemFile stays a class of Python: one in C has no `__del__`, by which a handle closes that nobody refers to.

cdef object _write(int fd, object chunks, long long position)
