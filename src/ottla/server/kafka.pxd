cimport cython

from ottla.model.clock cimport monotonic_us_of
from ottla.protocol.headers cimport RequestHeader, decode_request_header
from ottla.server.connection cimport Connection, bytes_in_memory
from ottla.server.exchange cimport RequestInFlight, begin_exchange


cdef class KafkaApplication:
    cdef readonly object _services
    cdef object _clock
    cdef readonly dict _routes
    cdef object _spares
    cdef object _protocol_errors

    @cython.locals(
        connection=Connection, frames=list, number=Py_ssize_t, exchange=RequestInFlight, arrived_us=cython.longlong,
        late_us=cython.longlong
    )
    cpdef list handle_frames(self, list arrivals)
    @cython.locals(exchange=RequestInFlight)
    cpdef _handle_together(self, list exchanges)
    @cython.locals(answer_bytes=Py_ssize_t, number=Py_ssize_t, exchange=RequestInFlight)
    cdef bint _handle_in_order(
        self, Connection connection, list frames, long long arrived_us, long long late_us
    ) except -1
    cdef void _handle(self, RequestInFlight exchange) except *
    @cython.locals(header=RequestHeader, version=cython.longlong, first=cython.longlong, last=cython.longlong, readers=dict)
    cdef RequestInFlight _open(self, Connection connection, object frame, long long arrived_us)
