cimport cython

from ottla.coordination.sessions cimport Client
from ottla.server.connection cimport Connection
from ottla.server.zookeeper.traffic cimport Traffic


cdef class Peer:
    cdef readonly Connection connection
    cdef public Client client
    cdef readonly long long established_ms
    cdef public long long received
    cdef public long long sent
    cdef readonly Traffic total
    cdef readonly object drop
    cdef public object sasl
    cdef public Py_ssize_t answer_bytes
    cdef public Py_ssize_t events_unsent_bytes

    @cython.locals(reply=bytes)
    cpdef notify(self, object event)


cdef class Exchange:
    cdef readonly Peer peer
    cdef readonly long long xid
    cdef readonly object encode
    cdef readonly long long arrived_us
    cdef public bint blocks
    cdef readonly object chunks

    cpdef reply(self, long long zxid, long long code, bytes body=*)
    cpdef send(self, bytes data)


@cython.locals(exchange=Exchange)
cpdef Exchange begin_exchange(Peer peer, long long xid, object encode, long long arrived_us)
