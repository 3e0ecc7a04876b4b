cdef class Route:
    cdef readonly object decode
    cdef readonly object encode
    cdef readonly object frequent
