cimport cython

from ottla.model.clock cimport monotonic_us_of


cdef class Traffic:
    cdef object _clock
    cdef public long long received
    cdef readonly long long sent
    cdef readonly long long latency_us_min
    cdef readonly long long latency_us_max
    cdef readonly long long latency_us_sum

    @cython.locals(latency_us=cython.longlong)
    cpdef answered(self, long long arrived_us)
