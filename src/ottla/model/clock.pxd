cdef class SystemClock:
    cpdef object wall_ms(self)
    cpdef object monotonic_ms(self)
    cpdef object monotonic_us(self)
