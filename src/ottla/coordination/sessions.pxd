cimport cython

from ottla.coordination.client cimport Requester


cdef class Client(Requester):
    cdef public Session session
    cdef public tuple identities
    cdef readonly object line


cdef class Session:
    cdef readonly long long id
    cdef readonly bytes password
    cdef public long long timeout_ms
    cdef public Client client
    cdef public bint is_closing
    cdef public long long bucket


cdef class ExpiryQueue:
    cdef readonly long long interval_ms
    cdef readonly dict _buckets
    cdef long long _next
    cdef long long _last_tick_ms
    cdef long long _lost_ms

    @cython.locals(bucket=cython.longlong)
    cpdef touch(self, Session session, long long now_ms)

    cpdef remove(self, Session session)

    @cython.locals(session=Session, bucket=cython.longlong, end=cython.longlong)
    cpdef list due(self, long long now_ms)
