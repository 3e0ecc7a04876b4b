from ottla.server.fetch_requests cimport FetchWork, Followed


cdef class FetchSession:
    cdef readonly object id
    cdef readonly bint by_id
    cdef public object epoch
    cdef public object last_used_ms
    cdef public dict partitions


cdef class Fetching:
    cdef readonly list followed
    cdef readonly FetchSession session
    cdef readonly bint incremental

    cpdef told_with_data(self, Followed followed)


cdef class FetchSessions:
    cdef object _slots
    cdef readonly dict _sessions
    cdef object _followed
    cdef object _random

    cpdef Fetching open(self, FetchWork work, int version, object now_ms)
    cdef void _change(self, FetchSession session, FetchWork work) except *


cdef dict _by_key(FetchWork work)
