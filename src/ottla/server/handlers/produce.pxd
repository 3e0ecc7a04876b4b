cimport cython

from ottla.records.batch cimport CheckedBatch, check_produced
from ottla.replica.partition cimport Partition
from ottla.replica.partitions cimport Partitions
from ottla.server.exchange cimport RequestInFlight
from ottla.server.produce_answers cimport encode_taken
from ottla.server.produce_requests cimport ProducePart, ProduceTopic, ProduceWork


@cython.locals(exchange=RequestInFlight, work=ProduceWork)
cpdef handle_turn(list exchanges, object services)

@cython.locals(exchange=RequestInFlight)
cdef void _fail(list exchanges, object error) except *

@cython.locals(exchange=RequestInFlight, parts=list)
cdef void _handle(list exchanges, object services) except *

@cython.locals(
    work=ProduceWork, topic=ProduceTopic, part=ProducePart, same=list, partition=Partition, batch=CheckedBatch
)
cdef void _check(RequestInFlight exchange, object services, object now_ms, dict by_partition) except *

@cython.locals(partitions=Partitions, partition=Partition)
cdef Partition _find(RequestInFlight exchange, object services, ProduceTopic topic, object index)

@cython.locals(work=ProduceWork, acks=cython.longlong, batch=CheckedBatch)
cdef CheckedBatch _check_batch(RequestInFlight exchange, Partition partition, object records, object now_ms)

@cython.locals(part=ProducePart, run=list, passed=dict)
cdef void _append(Partition partition, list parts, object now_ms) except *

@cython.locals(part=ProducePart, offset=cython.longlong)
cdef void _append_run(Partition partition, list run, object now_ms) except *

@cython.locals(part=ProducePart)
cdef void _refuse(list run, object refusal) except *

cdef class SharedWait:
    cdef object services
    cdef list waiting

    @cython.locals(exchange=RequestInFlight, part=ProducePart, left=list)
    cpdef bint attempt(self) except -1

    @cython.locals(exchange=RequestInFlight, part=ProducePart)
    cpdef expire(self)

    cdef void _answer(self, RequestInFlight exchange, object now_us) except *

    cpdef fail(self, object error)


@cython.locals(
    work=ProduceWork, topic=ProduceTopic, part=ProducePart, acks=cython.longlong, unsafe=list, shared=SharedWait
)
cdef void _finish(RequestInFlight exchange, object services, object now_us, dict waiting) except *

@cython.locals(partition=Partition, shared=SharedWait)
cdef void _park(dict waiting, object services) except *

cdef void _note_late(ProducePart part) except *

@cython.locals(partition=Partition)
cdef bint _is_safe(ProducePart part) except -1

@cython.locals(work=ProduceWork)
cdef void _answer(RequestInFlight exchange, object services, object now_us) except *

@cython.locals(topic=ProduceTopic, part=ProducePart)
cdef bint _are_taken(ProduceWork work) except -1

cdef object _throttle_ms(RequestInFlight exchange, object services)
