cimport cython
from posix.time cimport clockid_t, timespec


cdef class SystemClock:
    cpdef object wall_ms(self)
    cpdef object monotonic_ms(self)
    cpdef object monotonic_us(self)


cpdef long long wall_ms_of(object clock) except? -1
cpdef long long monotonic_ms_of(object clock) except? -1
cpdef long long monotonic_us_of(object clock) except? -1
cdef long long _now_us(clockid_t clock) noexcept
