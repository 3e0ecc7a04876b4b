cimport cython

from ottla.coordination.nodes cimport Node
from ottla.coordination.sessions cimport Client
from ottla.coordination.znodes cimport Tree


cdef class Exists:
    cdef readonly object path
    cdef readonly bint watch


cdef class GetData:
    cdef readonly object path
    cdef readonly bint watch


cdef class GetChildren:
    cdef readonly object path
    cdef readonly bint watch


cdef class Found:
    cdef readonly object code
    cdef readonly object value
    cdef readonly object shown
    cdef readonly object missed


@cython.locals(read=GetData)
cpdef GetData get_data_of(object path, bint watch)

@cython.locals(found=Found)
cdef Found found_of(object code, object value, object shown)


cdef class Reader:
    cdef Tree _tree
    cdef object _watches
    cdef dict _by_type

    cpdef Found read(self, Client client, object read)

    @cython.locals(node=Node)
    cpdef Found _exists(self, Client client, Exists read)

    @cython.locals(node=Node)
    cpdef Found _get_data(self, Client client, GetData read)

    @cython.locals(node=Node)
    cpdef Found _get_children(self, Client client, GetChildren read)

    cdef object _refusal(self, Client client, Node node, bint watch)


cdef object _shown(str path)
