cimport cython


cdef class CheckedBatch:
    cdef object _fields
    cdef readonly object body
    cdef readonly long long size
    cdef readonly long long attributes
    cdef readonly long long last_offset_delta
    cdef readonly long long max_timestamp
    cdef readonly long long producer_id
    cdef readonly long long record_count

cpdef CheckedBatch check_produced(object records, object version, object rules, object now_ms)

@cython.locals(batch=CheckedBatch, run=list, chunks=list)
cpdef list stamp_all(list batches, long long base_offset, long long leader_epoch, object append_time_ms)

@cython.locals(batch=CheckedBatch, size=Py_ssize_t, joined=bytes)
cdef bytes _join(list run, long long base_offset, long long leader_epoch)

cdef void _put_int32(unsigned char *room, long long value) noexcept
