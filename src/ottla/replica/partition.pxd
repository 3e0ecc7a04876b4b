cimport cython


cdef class Partition:
    cdef public object topic
    cdef public object topic_id
    cdef public object index
    cdef public object log
    cdef public object leader_epoch
    cdef public object in_sync_count
    cdef public object replica_count
    cdef public object storage_error
    cdef public object unavailable
    cdef public object records_in
    cdef public object bytes_in
    cdef public object bytes_out
    cdef public object config
    cdef public object rules
    cdef public object _signal
    cdef public object _high_watermark

    cpdef advance(self)
    cpdef check_in_sync(self)
    cpdef append(self, object batches, object now_ms)
