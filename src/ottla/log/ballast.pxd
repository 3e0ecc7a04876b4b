cdef class Ballast:
    cdef readonly bint is_spent
    cdef object _files
    cdef object _directory
    cdef object _path
    cdef object _size

    cpdef check(self)
