cimport cython

from ottla.protocol.frames cimport FrameCutter
from ottla.log.file_range cimport FileRange
from ottla.server.socket_calls cimport receive_into_now, receive_now, send_file_now, send_now


cdef class Connection:
    cdef readonly object socket
    cdef readonly int fd
    cdef readonly object peer_host
    cdef readonly int peer_port
    cdef readonly object listener
    cdef public object acceptor
    cdef readonly object application
    cdef readonly bint control
    cdef readonly FrameCutter cutter
    cdef public object principal
    cdef public bint authenticated
    cdef public object client_id
    cdef public object software
    cdef readonly list pending
    cdef public int interest
    cdef public long long muted_until_ms
    cdef readonly bint closed
    cdef public bint is_ending
    cdef public object frame_began_ms
    cdef public long long last_active_ms
    cdef public long long progress_ms
    cdef public Py_ssize_t counted_bytes
    cdef readonly FileRange cold
    cdef list _frames
    cdef list _out
    cdef long long _file_sent
    cdef long long _warm_end
    cdef dict _ready

    @cython.locals(received=Py_ssize_t, size=Py_ssize_t, count=Py_ssize_t)
    cpdef Py_ssize_t receive(self, long long now_ms) except -1
    @cython.locals(count=Py_ssize_t)
    cpdef object receive_whole(self, long long now_ms)
    cdef void _feed(self, bytes data, long long now_ms) except *
    cdef void _note_frames(self, list frames, long long now_ms) except *
    cpdef list take_frames(self, long long now_ms)
    cdef void _note_progress(self, long long now_ms) except *
    cdef Py_ssize_t _room(self) except -1
    cpdef bint is_at_rest(self) except -1
    cpdef bint may_read(self) except -1
    cpdef bint may_handle(self) except -1
    cpdef bint may_go_on(self) except -1
    cpdef bint is_blocked(self) except -1
    cpdef expect(self, object answer)
    cpdef answered(self)
    @cython.locals(pending=list, count=Py_ssize_t)
    cdef void _take_answers(self) except *
    @cython.locals(out=list, budget=Py_ssize_t, sent=Py_ssize_t)
    cpdef object send(self)
    @cython.locals(out=list, count=Py_ssize_t, sent=Py_ssize_t)
    cdef Py_ssize_t _send_bytes(self) except -1
    cdef Py_ssize_t _send_many(self) except -1
    cdef void _drop_sent_bytes(self, Py_ssize_t sent) except *
    @cython.locals(chunk=FileRange, position=cython.longlong, left=cython.longlong, size=cython.longlong, sent=Py_ssize_t)
    cdef Py_ssize_t _send_file(self) except -1

    @cython.locals(size=cython.longlong)
    cdef bint _is_cold(self, FileRange chunk, long long position, long long left) except -1


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t bytes_in_memory(object chunks) except -1
