cimport cython

from ottla.coordination.operations cimport set_data_of
from ottla.coordination.reads cimport get_data_of

cdef Py_ssize_t _PATH_LENGTH
cdef Py_ssize_t _PATH
cdef bytes _OPEN_ACL_BYTES
cdef Py_ssize_t _OPEN_ACL_SIZE


cpdef int xid_of(object frame) except? -1
cpdef int operation_of(object frame) except? -1

@cython.locals(p=cython.p_uchar, size=Py_ssize_t, length=Py_ssize_t)
cpdef object get_data(object frame)

@cython.locals(p=cython.p_uchar, size=Py_ssize_t, length=Py_ssize_t)
cpdef object exists(object frame)

@cython.locals(p=cython.p_uchar, size=Py_ssize_t, length=Py_ssize_t)
cpdef object get_children(object frame)

@cython.locals(p=cython.p_uchar, size=Py_ssize_t, length=Py_ssize_t, data_at=Py_ssize_t)
cpdef object set_data(object frame)

@cython.locals(p=cython.p_uchar, size=Py_ssize_t, length=Py_ssize_t, data_at=Py_ssize_t, acl_at=Py_ssize_t, flags=cython.int)
cpdef object create(object frame)

cdef unsigned char* _start(object frame) noexcept

cdef int _int(unsigned char* p, Py_ssize_t position) noexcept

@cython.locals(length=Py_ssize_t)
cdef Py_ssize_t _length(unsigned char* p, Py_ssize_t position, Py_ssize_t size) noexcept

cdef object _text(unsigned char* p, Py_ssize_t length)

cdef object _octets(unsigned char* p, Py_ssize_t length)
