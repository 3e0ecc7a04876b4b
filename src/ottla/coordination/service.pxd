cimport cython

from ottla.coordination.client cimport LocalCoordination
from ottla.coordination.reads cimport Found, Reader
from ottla.coordination.sessions cimport Client, ExpiryQueue, Session
from ottla.coordination.znodes cimport Tree
from ottla.model.clock cimport monotonic_ms_of


cdef class CoordinationService:
    cdef readonly long long session_timeout_ms_min
    cdef readonly long long session_timeout_ms_max
    cdef readonly long long tick_ms
    cdef readonly long long tick_interval_ms
    cdef readonly LocalCoordination _coordination
    cdef Tree _tree
    cdef object _clock
    cdef Reader _reader
    cdef ExpiryQueue _expiry
    cdef object _upkeep
    cdef readonly dict _sessions
    cdef long long _next_session_id

    @cython.locals(session=Session)
    cpdef submit(self, Client client, object operation, object done)

    @cython.locals(session=Session, found=Found)
    cpdef read(self, Client client, object read, object done)

    @cython.locals(session=Session)
    cpdef touch(self, Client client)
