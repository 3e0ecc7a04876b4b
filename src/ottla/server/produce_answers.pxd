cimport cython


@cython.locals(size=Py_ssize_t, out=list, parts=list, encoded=bytes, data=bytes)
cpdef bytes encode_taken(object version, object correlation_id, list topics, object throttle_ms)

@cython.locals(out=list, parts=list, encoded=bytes)
cdef bytes _encode_flexible(object version, object correlation_id, list topics, object throttle_ms)
