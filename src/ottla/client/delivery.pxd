from ottla.client.accumulator cimport Batch


cdef class SendFuture:
    cdef Batch _batch
    cdef Py_ssize_t _index
    cdef object _changed
