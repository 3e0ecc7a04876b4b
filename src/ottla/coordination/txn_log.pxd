cimport cython

from ottla.coordination.txns cimport Txn, encode_record
from ottla.coordination.frames cimport encode_frame
from ottla.coordination.znodes cimport Tree


cdef class SyncTicket:
    cdef readonly object direct
    cdef readonly list steps
    cdef readonly long long zxid


cdef class TxnLog:
    cdef readonly Tree tree
    cdef readonly long long durable_zxid
    cdef readonly object ballast
    cdef object _files
    cdef str _directory
    cdef long long _snapshot_log_bytes
    cdef list _logs
    cdef list _snapshots
    cdef long long _log_bytes
    cdef long long _snapshot_bytes
    cdef list _frames
    cdef public object _handle
    cdef long long _tag
    cdef long long _filled_end
    cdef long long _zeros_end
    cdef object _direct
    cdef object _snapshot
    cdef object _snapshot_handle
    cdef SyncTicket _under_way

    @cython.locals(frame=bytes)
    cpdef append(self, Txn txn)
