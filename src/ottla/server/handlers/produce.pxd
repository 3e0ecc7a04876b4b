cimport cython

from ottla.server.exchange cimport RequestInFlight


cdef class _Part:
    cdef public object index
    cdef public object partition
    cdef public object batch
    cdef public object error
    cdef public object base_offset
    cdef public object end_offset
    cdef public object time_ms

    cdef tuple taken(self)


cdef class _Request:
    cdef public RequestInFlight exchange
    cdef public Py_ssize_t size
    cdef public bint is_refused
    cdef public list topics


@cython.locals(exchange=RequestInFlight, request=_Request, parts=list)
cdef void _handle(list exchanges, object services) except *

@cython.locals(request=_Request, part=_Part, parts=list, same=list)
cdef _Request _check(RequestInFlight exchange, object services, object now_ms, dict by_partition)

cdef object _find(RequestInFlight exchange, object services, object topic, object index)

cdef object _check_batch(RequestInFlight exchange, object partition, object data, object now_ms)

@cython.locals(part=_Part, run=list, passed=dict)
cdef void _append(object partition, list parts, object now_ms) except *

@cython.locals(part=_Part)
cdef void _append_run(object partition, list run, object now_ms) except *

@cython.locals(part=_Part)
cdef void _refuse(list run, object refusal) except *

@cython.locals(exchange=RequestInFlight, part=_Part, parts=list, waiting=list)
cdef void _finish(_Request request, object services, object now_us) except *

cdef bint _is_safe(_Part part) except -1

@cython.locals(exchange=RequestInFlight, part=_Part, parts=list)
cdef void _finish_unanswered(_Request request, object services) except *

@cython.locals(exchange=RequestInFlight, part=_Part, parts=list, taken=list)
cdef void _answer(_Request request, object services, object now_us) except *

cdef object _throttle_ms(_Request request, object services)
