cdef class FileRange:
    cdef readonly object handle
    cdef readonly long long position
    cdef readonly long long size
