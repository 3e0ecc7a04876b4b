cimport cython
from posix.time cimport clockid_t, timespec


cdef class SystemClock:
    cpdef object wall_ms(self)
    cpdef object monotonic_ms(self)
    cpdef object monotonic_us(self)


cdef long long _now_us(clockid_t clock) noexcept
