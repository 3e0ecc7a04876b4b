cimport cython


cdef class Batch:
    cdef public object append_time_ms
    cdef public long long attempts
    cdef public object base_offset
    cdef public long long base_sequence
    cdef public list callbacks
    cdef public long long created_ms
    cdef public object encoded
    cdef public object error
    cdef public bint fate_unknown
    cdef public object halves
    cdef public bint is_done
    cdef public bint is_open
    cdef public bint is_told
    cdef readonly Lane lane
    cdef public object not_before_ms
    cdef public object on_done
    cdef readonly object order
    cdef public object records
    cdef public long long size


cdef class Lane:
    cdef public list in_flight
    cdef public bint is_acknowledged
    cdef public long long next_number
    cdef public long long next_sequence
    cdef public object queue
    cdef readonly object target


cdef class Accumulator:
    cdef long long _batch_bytes_max
    cdef readonly dict lanes
    cdef public long long bytes
    cdef public long long unfinished

    @cython.locals(lane=Lane, batch=Batch, index=Py_ssize_t, records=list)
    cpdef tuple append(self, object topic, object partition, object timestamp_ms, object key, object value, object headers, Py_ssize_t size, long long now_ms)

    cdef Lane _lane(self, object target)

    @cython.locals(batch=Batch)
    cdef Batch _begin(self, Lane lane, long long now_ms)


@cython.locals(size=Py_ssize_t)
cpdef Py_ssize_t size_of(object key, object value, object headers) except -1
