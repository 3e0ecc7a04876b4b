cimport cython

from ottla.coordination.stat cimport Stat


cdef long long _wrapped(long long number) except? -1

@cython.locals(following=cython.longlong)
cpdef long long next_version(long long version) except? -1


cdef class NodeNumbers:
    cdef public object acl
    cdef public long long aversion
    cdef public long long child_count
    cdef public long long child_creations
    cdef public long long ctime_ms
    cdef public long long czxid
    cdef public long long data_length
    cdef public long long ephemeral_owner
    cdef public long long mtime_ms
    cdef public long long mzxid
    cdef public long long pzxid
    cdef public long long version

    @cython.locals(stat=Stat)
    cpdef Stat stat(self)

    @cython.locals(copy=NodeNumbers)
    cpdef NodeNumbers numbers(self)

    cpdef child_created(self, long long zxid)
    cpdef child_deleted(self, long long zxid)
    cpdef data_set(self, long long data_length, long long zxid, long long time_ms)
    cpdef acl_set(self, object acl)


cdef class Node(NodeNumbers):
    cdef public set children
    cdef public object data
    cdef public long long snapshot_mark

    cpdef add_child(self, object name)
