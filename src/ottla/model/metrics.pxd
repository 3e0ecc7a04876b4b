cimport cython


cdef class Counter:
    cdef public long long value


cdef class Histogram:
    cdef public list buckets
    cdef public long long count
    cdef public long long sum_us

    cpdef observe_us(self, long long duration_us)


@cython.locals(length=cython.int)
cdef int _bit_length(long long duration_us) noexcept
