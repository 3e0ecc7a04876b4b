cimport cython


cdef class Created:
    cdef readonly str path
    cdef readonly bytes data
    cdef readonly long long ephemeral_owner
    cdef readonly object acl


cdef class DataSet:
    cdef readonly str path
    cdef readonly bytes data


cdef class Txn:
    cdef readonly long long zxid
    cdef readonly long long time_ms
    cdef readonly tuple changes


@cython.locals(parts=list)
cpdef bytes encode_txn(Txn txn)

cdef tuple _parts(int kind, str path, bytes data=*, long long owner=*, bytes acl=*)
