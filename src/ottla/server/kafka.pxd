cimport cython

from ottla.server.connection cimport Connection, bytes_in_memory
from ottla.server.exchange cimport RequestInFlight


cdef class KafkaApplication:
    cdef readonly object _services
    cdef readonly dict _routes
    cdef object _spares
    cdef object _protocol_errors

    @cython.locals(connection=Connection, frames=list, number=Py_ssize_t, exchange=RequestInFlight)
    cpdef list handle_frames(self, list arrivals)

    @cython.locals(answer_bytes=Py_ssize_t, number=Py_ssize_t, exchange=RequestInFlight)
    cdef bint _handle_in_order(self, Connection connection, list frames, object arrived_us, object late_us) except -1

    cdef void _handle(self, RequestInFlight exchange) except *
    cdef RequestInFlight _open(self, Connection connection, object frame, object arrived_us)
