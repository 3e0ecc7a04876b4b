cimport cython

from ottla.model.metrics cimport Counter
from ottla.server.connection cimport Connection
from ottla.server.mailbox cimport Mailbox
from ottla.server.timers cimport Timers


cdef class Reactor:
    cdef readonly object clock
    cdef readonly Timers timers
    cdef public object offload
    cdef public object file_failed
    cdef public list turn_hooks
    cdef readonly object post
    cdef readonly int ring_fd
    cdef object _options
    cdef object _poller
    cdef readonly dict _connections
    cdef readonly dict _ready
    cdef list _postponed
    cdef Mailbox _mailbox
    cdef readonly Py_ssize_t _held_bytes
    cdef long long _now_ms
    cdef bint _running
    cdef bint _reading
    cdef Counter _bytes_in
    cdef Counter _turns
    cdef object _accepting

    @cython.locals(connection=Connection, bits=cython.int)
    cpdef turn(self, object wait_ms_max=*)

    @cython.locals(budget=cython.longlong)
    cdef void _receive(self, dict readable, long long now_ms) except *

    @cython.locals(connection=Connection)
    cdef bint _is_control(self, object fd) except -1

    @cython.locals(connection=Connection, unserved=Connection, frames=list)
    cdef void _handle(self, dict arrivals) except *

    @cython.locals(connection=Connection, size=Py_ssize_t)
    cdef Py_ssize_t _receive_one(self, object fd, long long now_ms, dict arrivals) except -1

    @cython.locals(known=list)
    cdef void _arrived(self, Connection connection, list frames, dict arrivals) except *

    @cython.locals(frames=list)
    cdef Py_ssize_t _take_frames(self, Connection connection, object received, long long now_ms, dict arrivals) except -1

    @cython.locals(held_bytes=Py_ssize_t)
    cdef void _count_held(self, Connection connection) except *

    @cython.locals(connection=Connection, ready=list)
    cdef void _send_answers(self) except *

    @cython.locals(interest=cython.int)
    cdef void _watch(self, Connection connection) except *

    cpdef drop(self, Connection connection, object reason)
    cdef void _close(self, Connection connection) except *
