cdef class DiskWork:
    cdef int perform(self) noexcept nogil


cdef class DiskLane:
    cdef readonly bint is_done
    cdef int _error
    cdef DiskWork _work
    cdef int _bell_fd
    cdef int _asked_fd
    cdef int _asking_fd
    cdef char[1] _byte

    cpdef give(self, DiskWork work)
    cpdef int take(self) except? -1
    cdef bint _is_asked(self) noexcept nogil
    cdef void _tell(self) noexcept nogil
