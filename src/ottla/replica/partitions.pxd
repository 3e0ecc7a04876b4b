from ottla.replica.partition cimport Partition


cdef class Partitions:
    cdef readonly dict _by_name
    cdef readonly dict _by_id
    cdef readonly dict _by_log
    cdef readonly dict _offline
    cdef readonly set _expected
    cdef public list on_add

    cpdef Partition named(self, object topic, object index)
    cpdef Partition with_id(self, object topic_id, object index)
    cpdef Partition of_log(self, object log)
