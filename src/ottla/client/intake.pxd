cimport cython

from ottla.client.accumulator cimport Accumulator, Batch


cdef class Outgoing:
    cdef readonly object key
    cdef readonly object key_bytes
    cdef readonly object value
    cdef readonly object value_bytes
    cdef readonly object headers
    cdef readonly object timestamp_ms
    cdef readonly Py_ssize_t size


cdef class Intake:
    cdef readonly object interceptors
    cdef readonly long long buffer_bytes
    cdef readonly long long batch_bytes_max
    cdef readonly object spare_rooms
    cdef long long _record_bytes_max
    cdef object _key
    cdef object _value
    cdef object _choice
    cdef bint _is_sticky
    cdef object _partitioner
    cdef Accumulator _batches
    cdef object _metadata
    cdef object _transactions
    cdef dict _keyless

    @cython.locals(size=Py_ssize_t)
    cpdef Outgoing prepare(self, object topic, object value, object key, object headers, object timestamp_ms)

    cpdef object chosen_by_user(self, object topic, Outgoing record)
    cpdef bint has_room(self, Py_ssize_t size) except -1

    @cython.locals(batch=Batch, placed=tuple)
    cpdef tuple append(self, object known, Outgoing record, object partition, long long now_ms, object on_delivery)

    @cython.locals(batch=Batch)
    cdef object _choose(self, object topic, object key, object known, long long now_ms)
