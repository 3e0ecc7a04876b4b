cimport cython

from ottla.log.file_range cimport FileRange
from ottla.log.roll_limits cimport RollLimits
from ottla.log.segment cimport Segment
from ottla.log.segment_list cimport SegmentList
from ottla.records.batch cimport CheckedBatch, stamp_all


cdef class PartitionLog:
    cdef public object topic_partition
    cdef public object directory
    cdef public object producers
    cdef public object epochs
    cdef public long long log_start_offset
    cdef public long long log_end_offset
    cdef public long long synced_offset
    cdef public object segment_files
    cdef public object config
    cdef public bint durable
    cdef public object _storage
    cdef public SegmentList _segments
    cdef public object _snapshots
    cdef public object _epoch_file
    cdef public object _unsynced
    cdef public object _ticket
    cdef public object _is_complete
    cdef public object _bytes_since_snapshot
    cdef public object _last_sync_ms
    cdef public RollLimits _roll_limits
    cdef public object _index_interval_bytes
    cdef public object _log_append_time

    @cython.locals(
        batch=CheckedBatch, producing=cython.bint, offset=cython.longlong, first_offset=cython.longlong,
        size=cython.longlong, timestamp=cython.longlong, max_timestamp=cython.longlong,
        max_timestamp_offset=cython.longlong, segment=Segment
    )
    cpdef append(self, list batches, object leader_epoch, object now_ms)
    @cython.locals(
        segment=Segment, start=cython.longlong, end=cython.longlong, size=cython.longlong,
        first_size=cython.longlong
    )
    cpdef FileRange read(self, long long offset, long long bytes_max, long long end_offset, bint at_least_one=*)
