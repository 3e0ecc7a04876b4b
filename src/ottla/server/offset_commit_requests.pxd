cimport cython

from ottla.protocol.frame_reader cimport FrameReader


cdef class CommitPart:
    cdef readonly long long index
    cdef readonly long long offset
    cdef readonly long long leader_epoch
    cdef readonly str metadata
    cdef public long long code


cdef class CommitTopic:
    cdef readonly str name
    cdef readonly object topic_id
    cdef readonly list partitions


cdef class CommitWork:
    cdef readonly str group_id
    cdef readonly long long generation
    cdef readonly str member_id
    cdef public str instance_id
    cdef public long long retention_ms
    cdef readonly list topics
    cdef public long long partition_count
    cdef public long long unfinished


@cython.locals(work=CommitWork)
cpdef tuple read_commit(object frame, Py_ssize_t position, int version)

@cython.locals(
    reader=FrameReader, compact=cython.bint, work=CommitWork, generation=cython.longlong, left=cython.longlong,
    topics=cython.longlong, topic=CommitTopic, partitions=cython.longlong, index=cython.longlong,
    offset=cython.longlong, leader_epoch=cython.longlong
)
cpdef CommitWork read_usual(object frame, Py_ssize_t position, int version)

cdef CommitTopic _begin_topic(FrameReader reader, int version, bint compact)
