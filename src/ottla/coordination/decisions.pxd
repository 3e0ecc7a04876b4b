cimport cython

from ottla.coordination.nodes cimport Node, NodeNumbers
from ottla.coordination.operations cimport Create, Result, SetData, StepResult, result_of, step_result
from ottla.coordination.txns cimport Created, DataSet, Txn, data_set_of, txn_of


@cython.locals(decision=_Decision, answer=StepResult)
cpdef tuple decide(object state, object operation, long long session_id, long long now_ms, object identities)


@cython.locals(decision=_Decision)
cdef _Decision _decision(object state, long long session_id, long long now_ms, object identities)


cdef class _Decision:
    cdef list _changes
    cdef dict _edited
    cdef bint _has_quotas
    cdef object _identities
    cdef dict _nodes
    cdef long long _now_ms
    cdef long long _session_id
    cdef object _state
    cdef dict _used
    cdef long long _zxid

    cdef tuple finish(self, list answers)
    @cython.locals(written=NodeNumbers)
    cdef StepResult step(self, object step)

    @cython.locals(parent=NodeNumbers, node=NodeNumbers, data=bytes, size=Py_ssize_t, owner=cython.longlong)
    cdef StepResult _create(self, Create step)

    cdef long long _owner(self, Create step) except? -1

    @cython.locals(parent=NodeNumbers, node=NodeNumbers)
    cdef StepResult _delete(self, object step)

    @cython.locals(size=Py_ssize_t, edited=NodeNumbers, data=bytes)
    cdef StepResult _set_data(self, SetData step, NodeNumbers node)

    @cython.locals(node=NodeNumbers, edited=NodeNumbers)
    cdef StepResult _set_acl(self, object step)

    cdef StepResult _check(self, object step, NodeNumbers node)
    cdef NodeNumbers _find(self, object path)
    cdef NodeNumbers _edit(self, object path, NodeNumbers node)
