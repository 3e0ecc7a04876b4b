cimport cython


# Deadlines stay Python's numbers: intervals may be set to 2^63 - 1 ms.
cdef class Timer:
    cdef readonly object deadline_ms
    cdef readonly long long order
    cdef public object action


cdef class Timers:
    cdef readonly list _heap
    cdef Py_ssize_t _cancelled
    cdef long long _order

    cpdef Timer set(self, object deadline_ms, object action)
    cpdef cancel(self, Timer timer)

    @cython.locals(first=Timer)
    cpdef object next_deadline_ms(self)

    @cython.locals(timer=Timer)
    cpdef fire(self, object now_ms)
