cimport cython

from ottla.protocol.frame_reader cimport FrameReader
from ottla.records.batch cimport CheckedBatch
from ottla.replica.partition cimport Partition


cdef class ProducePart:
    cdef readonly long long index
    cdef public object records
    cdef public Partition partition
    cdef public CheckedBatch batch
    cdef public object error
    cdef public long long base_offset
    cdef public long long log_start_offset
    cdef public long long end_offset
    cdef public long long time_ms


cdef class ProduceTopic:
    cdef readonly str name
    cdef readonly object topic_id
    cdef readonly list parts


cdef class ProduceWork:
    cdef readonly str transactional_id
    cdef readonly long long acks
    cdef readonly long long timeout_ms
    cdef readonly list topics
    cdef public long long size
    cdef public bint is_refused


@cython.locals(work=ProduceWork)
cpdef tuple read_produce(object frame, Py_ssize_t position, int version)

@cython.locals(
    reader=FrameReader, left=cython.longlong, topics=cython.longlong, parts=cython.longlong, compact=cython.bint,
    topic=ProduceTopic, work=ProduceWork, index=cython.longlong
)
cpdef ProduceWork read_usual(object frame, Py_ssize_t position, int version)

cdef ProduceTopic _begin_topic(FrameReader reader, int version, bint compact)
