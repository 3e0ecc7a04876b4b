cimport cython

from ottla.protocol.frame_writer cimport FrameWriter
from ottla.replica.partition cimport Partition
from ottla.server.fetch_requests cimport Followed


cdef class Told:
    cdef readonly Followed followed
    cdef readonly Partition partition
    cdef public object error
    cdef public object diverging
    cdef public long long high_watermark
    cdef public long long last_stable_offset
    cdef public long long log_start_offset
    cdef public object aborted
    cdef public object records


@cython.locals(compact=cython.bint, writer=FrameWriter, all_told=list, told=Told, ranges=list, places=list)
cpdef list encode_told(int version, long long correlation_id, long long throttle_ms, long long session_id, dict by_topic)

cdef void _write_offsets(FrameWriter writer, Told told, int version, bint compact) except *

cdef void _write_records(FrameWriter writer, object records, bint compact, list ranges, list places) except *

@cython.locals(behind=Py_ssize_t, written=bytes, begin=Py_ssize_t, end=Py_ssize_t, number=Py_ssize_t)
cdef list _around(FrameWriter writer, list ranges, list places)
