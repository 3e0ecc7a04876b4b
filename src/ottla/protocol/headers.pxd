cimport cython

from ottla.protocol.frame_reader cimport FrameReader


@cython.locals(
    reader=FrameReader, api_key=cython.longlong, api_version=cython.longlong, correlation_id=cython.longlong,
    since=cython.longlong, last=cython.longlong, known=tuple
)
cpdef tuple decode_request_header(object frame)

@cython.locals(size=Py_ssize_t)
cpdef list response_around(object api, object version, object correlation_id, list chunks)

cdef Py_ssize_t _size_of(list chunks) except -1
cdef list _behind(bytes prefix, list chunks)
