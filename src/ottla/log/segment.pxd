cimport cython

from ottla.log.open_files cimport PooledFile


cdef class Segment:
    cdef public long long base_offset
    cdef public long long end_offset
    cdef public long long size
    cdef public PooledFile log
    cdef public object offset_index
    cdef public object time_index
    cdef public object txn_index
    cdef public object first_timestamp
    cdef public object created_ms
    cdef public object roll_jitter_ms
    cdef public object _max_timestamp
    cdef public object _max_timestamp_offset
    cdef public object _bytes_since_entry
    cdef public list _recent_offsets
    cdef public list _recent_ends
    cdef public list _recent_positions

    cpdef append(
        self,
        object chunks,
        object size,
        object first_offset,
        object first_batch_end,
        object last_offset,
        object max_timestamp,
        object max_timestamp_offset,
        object index_interval_bytes,
    )
    cpdef writer(self)
    cdef void _add_index_entries(self, object batch_end, object position) except *
    cpdef position_of(self, object offset)
    cpdef batch_bytes_max(self, object position)
    @cython.locals(at=Py_ssize_t, is_last=cython.bint)
    cpdef bint was_appended_alone(self, object position) except -1
    cdef object _scan_for(self, object offset, object start)
