cimport cython

from ottla.protocol.frame_reader cimport FrameReader


cdef class Followed:
    cdef readonly object topic
    cdef readonly long long index
    cdef readonly long long current_leader_epoch
    cdef readonly long long fetch_offset
    cdef readonly long long last_fetched_epoch
    cdef readonly long long bytes_max
    cdef readonly long long high_watermark
    cdef readonly long long log_start_offset

    cpdef void ask(self, Followed other) except *
    @cython.locals(changed=cython.bint)
    cpdef bint note(self, bint failed, long long high_watermark, long long log_start_offset) except -1


cdef class FetchWork:
    cdef readonly long long replica_id
    cdef readonly long long wait_ms_max
    cdef readonly long long bytes_min
    cdef readonly long long bytes_max
    cdef public bint is_committed
    cdef public long long session_id
    cdef public long long session_epoch
    cdef readonly list followed
    cdef readonly list forgotten


@cython.locals(work=FetchWork)
cpdef tuple read_fetch(object frame, Py_ssize_t position, int version)

@cython.locals(
    reader=FrameReader, left=cython.longlong, topics=cython.longlong, partitions=cython.longlong,
    compact=cython.bint, work=FetchWork, replica_id=cython.longlong, wait_ms_max=cython.longlong,
    bytes_min=cython.longlong
)
cpdef FetchWork read_usual(object frame, Py_ssize_t position, int version)

@cython.locals(
    index=cython.longlong, current_leader_epoch=cython.longlong, fetch_offset=cython.longlong,
    last_fetched_epoch=cython.longlong
)
cdef Followed _read_partition(FrameReader reader, object topic, int version)
