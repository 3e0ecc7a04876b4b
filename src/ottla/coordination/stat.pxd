cdef class Stat:
    cdef readonly long long czxid
    cdef readonly long long mzxid
    cdef readonly long long ctime_ms
    cdef readonly long long mtime_ms
    cdef readonly long long version
    cdef readonly long long cversion
    cdef readonly long long aversion
    cdef readonly long long ephemeral_owner
    cdef readonly long long data_length
    cdef readonly long long num_children
    cdef readonly long long pzxid
