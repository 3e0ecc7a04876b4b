cimport cython

from ottla.coordination.stat cimport Stat


cdef class Create:
    cdef readonly object path
    cdef readonly object data
    cdef readonly bint ephemeral
    cdef readonly bint sequential
    cdef readonly object acl
    cdef readonly bint container
    cdef readonly long long ttl_ms


cdef class SetData:
    cdef readonly object path
    cdef readonly object data
    cdef readonly long long version


cdef class StepResult:
    cdef readonly object code
    cdef readonly object path
    cdef readonly Stat stat


cdef class Result:
    cdef readonly object code
    cdef readonly long long zxid
    cdef readonly object steps


@cython.locals(operation=SetData)
cpdef SetData set_data_of(object path, object data, long long version)

@cython.locals(result=StepResult)
cpdef StepResult step_result(object code, object path, Stat stat)

@cython.locals(result=Result)
cpdef Result result_of(object code, long long zxid, object steps)
