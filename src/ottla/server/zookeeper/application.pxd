cimport cython

from ottla.coordination.service cimport CoordinationService
from ottla.coordination.sessions cimport Client
from ottla.model.clock cimport monotonic_us_of
from ottla.server.connection cimport Connection
from ottla.server.zookeeper.frequent_requests cimport operation_of, xid_of
from ottla.server.zookeeper.peer cimport Exchange, Peer, begin_exchange
from ottla.server.zookeeper.route cimport Route
from ottla.server.zookeeper.traffic cimport Traffic


cdef class ZooKeeperApplication:
    cdef readonly dict peers
    cdef readonly Traffic traffic
    cdef CoordinationService _service
    cdef object _reactor
    cdef object _sasl_passwords
    cdef object _clock
    cdef long long _arrived_us
    cdef object _words
    cdef object _drop_one
    cdef object _protocol_errors

    @cython.locals(connection=Connection, frames=list, late_us=cython.longlong)
    cpdef list handle_frames(self, list arrivals)

    @cython.locals(peer=Peer, number=Py_ssize_t)
    cdef bint _handle_all(self, Connection connection, list frames, long long late_us) except -1

    @cython.locals(client=Client, route=Route, xid=cython.int, operation=cython.int, exchange=Exchange)
    cdef void _handle(self, Peer peer, object frame) except *


cdef object _asked(Route route, object frame)
