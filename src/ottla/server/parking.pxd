cimport cython

from ottla.server.timers cimport Timer, Timers


cdef class Waiter:
    cdef readonly object keys
    cdef readonly object attempt
    cdef readonly object expire
    cdef readonly object fail
    cdef public Timer timer
    cdef public bint marked


cdef class Parking:
    cdef readonly Timers _timers
    cdef readonly dict _by_key
    cdef list _marked
    cdef dict _waiters

    @cython.locals(waiter=Waiter)
    cpdef notify(self, object key)
    @cython.locals(waiter=Waiter, marked=list)
    cpdef settle(self)
    @cython.locals(waiters=dict)
    cpdef forget(self, Waiter waiter)
    cdef void _try(self, Waiter waiter) except *
    cdef void _expire(self, Waiter waiter) except *
