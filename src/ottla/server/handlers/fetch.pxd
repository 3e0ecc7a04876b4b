cimport cython

from ottla.server.exchange cimport RequestInFlight


cdef class _Reading:
    cdef public list cold
    cdef public list followed
    cdef public list told
    cdef public object size
    cdef public bint failed


@cython.locals(reading=_Reading)
cdef void _serve(RequestInFlight exchange, object fetching, object deadline_ms, object services, object tries=*) except *

cdef bint _is_enough(_Reading reading, object request) except -1

@cython.locals(reading=_Reading)
cdef _Reading _read(RequestInFlight exchange, object fetching, object services, object may_wait=*)

cdef object _find(RequestInFlight exchange, object followed, object services)

cdef object _read_partition(object partition, object asked, object request, object bytes_left, object first)

cdef void _answer(RequestInFlight exchange, object fetching, _Reading reading, object services) except *
