cimport cython

from ottla.log.segment cimport Segment


cdef class RollLimits:
    cdef readonly long long segment_bytes_max
    cdef long long _segment_ms_max
    cdef long long _index_entries_max

    @cython.locals(first_timestamp=object, age_ms=cython.longlong)
    cpdef bint are_passed(
        self, Segment segment, long long size, long long last_offset, long long max_timestamp, long long now_ms
    ) except -1
