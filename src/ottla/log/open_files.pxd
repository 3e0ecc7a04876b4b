cdef class PooledFile:
    cdef public object path
    cdef public bint recently_used
    cdef OpenFiles _pool
    cdef object _handle

    cpdef object handle(self)
    cpdef object pread(self, object size, object position)
    cdef object _adopt(self, object handle)
    cpdef object open_handle(self)
    cpdef release(self)


cdef class WithoutWaiting:
    cdef OpenFiles _pool


cdef class OpenFiles:
    cdef readonly object files
    cdef public bint waits
    cdef readonly WithoutWaiting without_waiting
    cdef Py_ssize_t _count_max
    cdef object _open

    cpdef opened(self, PooledFile file)
