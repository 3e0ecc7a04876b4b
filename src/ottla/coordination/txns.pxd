cimport cython

cdef unsigned int _NO_DATA
cdef unsigned char _DATA_SET
cdef Py_ssize_t _DATA_SET_HEAD_BYTES


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


@cython.locals(change=DataSet)
cpdef DataSet data_set_of(str path, bytes data)

@cython.locals(txn=Txn)
cpdef Txn txn_of(long long zxid, long long time_ms, tuple changes)

@cython.locals(parts=list)
cpdef bytes encode_txn(Txn txn)

cpdef bytes encode_record(Txn txn, long long durable_zxid)

@cython.locals(path=bytes, data=bytes, size=cython.longlong, path_bytes=Py_ssize_t, data_bytes=Py_ssize_t, record=bytes, p=cython.p_uchar)
cdef bytes _encode_data_set(Txn txn, DataSet change, long long durable_zxid)

cdef tuple _parts(int kind, str path, bytes data=*, long long owner=*, bytes acl=*)
