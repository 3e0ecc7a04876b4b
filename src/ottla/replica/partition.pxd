cimport cython

from ottla.log.partition_log cimport PartitionLog
from ottla.records.batch cimport CheckedBatch


cdef class Partition:
    cdef public object topic
    cdef public object topic_id
    cdef public object index
    cdef public PartitionLog log
    cdef public object leader_epoch
    cdef public long long in_sync_count
    cdef public long long replica_count
    cdef long long _in_sync_min
    cdef public object storage_error
    cdef public object unavailable
    cdef public long long records_in
    cdef public long long bytes_in
    cdef public long long bytes_out
    cdef public object config
    cdef public object rules
    cdef readonly bint is_internal
    cdef readonly bint look_inside
    cdef readonly long long segment_bytes
    cdef public object _signal
    cdef readonly long long high_watermark

    @cython.locals(own=PartitionLog, safe=cython.longlong)
    cpdef advance(self)
    cpdef check_in_sync(self)
    @cython.locals(batch=CheckedBatch)
    cpdef append(self, list batches, object now_ms)
