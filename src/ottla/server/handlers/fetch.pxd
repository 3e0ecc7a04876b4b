cimport cython

from ottla.model.clock cimport monotonic_ms_of
from ottla.replica.partition cimport Partition
from ottla.replica.partitions cimport Partitions
from ottla.server.exchange cimport RequestInFlight
from ottla.server.fetch_answers cimport Told, encode_told
from ottla.server.fetch_requests cimport FetchWork, Followed
from ottla.server.fetch_sessions cimport Fetching


cdef class _Reading:
    cdef public list cold
    cdef public list told
    cdef public long long size
    cdef public bint failed


@cython.locals(work=FetchWork)
cdef void _check_replica(RequestInFlight exchange, object services) except *

@cython.locals(reading=_Reading)
cdef void _serve(RequestInFlight exchange, Fetching fetching, long long deadline_ms, object services, object tries=*) except *

cdef bint _is_enough(_Reading reading, FetchWork work) except -1

@cython.locals(
    reading=_Reading, work=FetchWork, left=cython.longlong, followed=Followed, partition=Partition, told=Told
)
cdef _Reading _read(RequestInFlight exchange, Fetching fetching, object services, bint may_wait=*)

@cython.locals(partitions=Partitions, partition=Partition, work=FetchWork)
cdef Partition _find(RequestInFlight exchange, Followed followed, object services)

@cython.locals(told=Told, offset=cython.longlong, end_offset=cython.longlong, limit=cython.longlong)
cdef Told _read_partition(Partition partition, Followed followed, FetchWork work, long long bytes_left, bint first)

@cython.locals(told=Told, followed=Followed, is_news=cython.bint, same=list, by_topic=dict)
cdef void _answer(RequestInFlight exchange, Fetching fetching, _Reading reading, object services) except *
