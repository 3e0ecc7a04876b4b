cimport cython


@cython.locals(position=Py_ssize_t, length=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t)
cpdef tuple decode_request_header(object frame)

@cython.locals(size=Py_ssize_t)
cpdef list response_around(object api, object version, object correlation_id, list chunks)

cdef Py_ssize_t _size_of(list chunks) except -1
cdef list _behind(bytes prefix, list chunks)
