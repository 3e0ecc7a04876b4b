cimport cython

from ottla.log.disk_lane cimport DiskWork


cdef class FileSyncs(DiskWork):
    cdef int[2] _fds
    cdef int[2] _errors
    cdef int _count
    cdef int _filesystem_fd

    @cython.locals(at=cython.int, found=cython.int)
    cdef int perform(self) noexcept nogil

    cpdef int error_of(self, int at) except? -1
