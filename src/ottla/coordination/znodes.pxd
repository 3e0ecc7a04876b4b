cimport cython

from ottla.coordination.decisions cimport decide
from ottla.coordination.nodes cimport Node
from ottla.coordination.stat cimport Stat
from ottla.coordination.txns cimport Created, DataSet, Txn


cdef class Tree:
    cdef readonly dict nodes
    cdef readonly dict sessions
    cdef readonly dict ephemerals
    cdef readonly dict fading
    cdef readonly object quotas
    cdef public long long data_bytes
    cdef public long long last_zxid
    cdef public long long snapshot_mark
    cdef public object before_change

    cpdef tuple decide(self, object operation, long long session_id, long long now_ms, object identities=*)
    cpdef apply(self, Txn txn)

    @cython.locals(cut=Py_ssize_t, parent=Node, node=Node, path=str)
    cdef void _create(self, Created change, Txn txn) except *

    @cython.locals(node=Node, before=cython.longlong, data=bytes)
    cdef void _set_data(self, DataSet change, Txn txn) except *

    @cython.locals(node=Node)
    cdef Node _changing(self, object path)
