cimport cython

from ottla.server.exchange cimport RequestInFlight
from ottla.server.offset_commit_answers cimport encode_codes
from ottla.server.offset_commit_requests cimport CommitPart, CommitTopic, CommitWork


@cython.locals(work=CommitWork)
cpdef handle(RequestInFlight exchange, object services)

@cython.locals(work=CommitWork, commits=list)
cdef void _commit(RequestInFlight exchange, object services, list topics) except *

@cython.locals(commits=list, topic=CommitTopic, part=CommitPart, partition_count=cython.longlong)
cdef list _take(RequestInFlight exchange, object services, list topics, object machine)

@cython.locals(topic=CommitTopic, part=CommitPart)
cdef void _refuse(list topics, object code) except *

@cython.locals(topic=CommitTopic, part=CommitPart)
cpdef _written(RequestInFlight exchange, list topics, object refusal)

@cython.locals(work=CommitWork)
cdef void _finish(RequestInFlight exchange) except *
