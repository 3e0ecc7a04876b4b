cimport cython


@cython.locals(fd=cython.int, end=cython.longlong, probed=cython.longlong, found=cython.int)
cpdef bint is_resident(object handle, long long position, long long size) except -1
