cimport cython

from ottla.coordination.client cimport Answer
from ottla.coordination.operations cimport Result, StepResult
from ottla.coordination.stat cimport Stat

cdef Py_ssize_t _STAT_BYTES
cdef Py_ssize_t _HEADER_BYTES


@cython.locals(size=Py_ssize_t, reply=bytes, p=cython.p_uchar)
cpdef bytes encode_reply(long long xid, long long zxid, long long error, bytes body=*)

cpdef bytes of_exists(Answer answer)

cpdef bytes of_get_data(Answer answer)

cpdef bytes of_get_children2(Answer answer)

@cython.locals(stat=Stat)
cpdef bytes of_set_data(Result result)

@cython.locals(body=bytes)
cpdef bytes encode_stat(Stat stat)

@cython.locals(size=Py_ssize_t, body=bytes, p=cython.p_uchar)
cpdef bytes encode_data(bytes data, Stat stat)

@cython.locals(size=Py_ssize_t, body=bytes, p=cython.p_uchar, length=Py_ssize_t, encoded=list, name_bytes=bytes, name=str)
cpdef bytes encode_children(list names, Stat stat)

cdef unsigned char* _start(bytes reply) noexcept
cdef void _put_stat(unsigned char* p, Stat stat) noexcept
