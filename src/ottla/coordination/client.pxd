cimport cython

from ottla.coordination.operations cimport Result
from ottla.coordination.txn_log cimport TxnLog
from ottla.coordination.txns cimport Created, DataSet, Txn
from ottla.coordination.znodes cimport Tree
from ottla.model.clock cimport wall_ms_of


cdef class Answer:
    cdef readonly object code
    cdef readonly long long zxid
    cdef readonly object value


cdef class Requester:
    cdef public Py_ssize_t waiting
    cdef public bint is_gone


cdef class _Waiting:
    cdef readonly long long zxid
    cdef readonly object done
    cdef readonly object result
    cdef readonly object fired
    cdef readonly Requester requester
    cdef readonly object changed


@cython.locals(waiting=_Waiting)
cdef _Waiting _waiting(long long zxid, object done, object result, object fired, Requester requester, object changed)

@cython.locals(answer=Answer)
cdef Answer _answer_of(object code, long long zxid, object value)


cdef class LocalCoordination:
    cdef TxnLog _log
    cdef readonly Tree tree
    cdef readonly object watches
    cdef dict _data_watches
    cdef dict _child_watches
    cdef public long long answered_zxid
    cdef public bint is_blocked
    cdef object _clock
    cdef object _waiting
    cdef dict _unanswered

    @cython.locals(tree=Tree, txn=Txn)
    cpdef submit(self, object operation, object done, long long session_id=*, object identities=*, Requester requester=*)

    @cython.locals(zxid=cython.longlong)
    cpdef answer(self, Requester requester, object shown, object done, object code, object value, object missed=*)

    @cython.locals(next_one=_Waiting, unanswered=dict, durable_zxid=cython.longlong, requester=Requester)
    cdef void _answer(self) except *


@cython.locals(changed=list)
cdef object _changed_nodes(Txn txn)
