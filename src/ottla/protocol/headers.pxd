cimport cython

from ottla.protocol.frame_reader cimport FrameReader


cdef class RequestHeader:
    cdef readonly long long api_key
    cdef readonly long long api_version
    cdef readonly long long correlation_id
    cdef readonly object client_id


@cython.locals(
    reader=FrameReader, header=RequestHeader, api_key=cython.longlong, api_version=cython.longlong,
    since=cython.longlong, last=cython.longlong, known=tuple
)
cpdef tuple decode_request_header(object frame)

@cython.locals(size=Py_ssize_t)
cpdef list response_around(object api, object version, object correlation_id, list chunks)

@cython.locals(copy=bytes)
cpdef bytes with_correlation_id(bytes frame, long long correlation_id)

cdef Py_ssize_t _size_of(list chunks) except -1
cdef list _behind(bytes prefix, list chunks)
