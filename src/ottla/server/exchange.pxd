cimport cython

from ottla.model.clock cimport monotonic_us_of
from ottla.model.metrics cimport Counter, Histogram
from ottla.protocol.headers cimport RequestHeader, with_correlation_id
from ottla.server.connection cimport Connection


cdef class ApiMetrics:
    cdef readonly Counter count
    cdef readonly Counter errors
    cdef readonly Histogram time

    cpdef observe_us(self, long long duration_us)


cdef class RequestInFlight:
    cdef public long long arrived_us
    cdef public bint blocks
    cdef public object chunks
    cdef public object client_id
    cdef readonly Connection connection
    cdef public long long correlation_id
    cdef readonly ApiMetrics metrics
    cdef public object request
    cdef public object route
    cdef public object services
    cdef public int version
    cdef public object waiter

    cpdef answer(self, object response, object throttle_ms=*)
    cpdef answer_same(self, bytes frame)
    cpdef answer_with(self, bytes frame, long long now_us)
    cpdef answer_chunks(self, list chunks)
    cpdef answer_nothing(self)
    cdef void _finished(self) except *
    cpdef bint may(self, object resource_name) except -1


@cython.locals(exchange=RequestInFlight)
cpdef RequestInFlight begin_exchange(
    object services, Connection connection, object route, RequestHeader header, object request, long long arrived_us
)
