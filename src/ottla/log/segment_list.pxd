cimport cython

from ottla.log.segment cimport Segment


cdef class SegmentList:
    cdef list _segments
    cdef readonly list bases
    cdef readonly Segment active
    cdef readonly long long change_count

    @cython.locals(at=Py_ssize_t, segment=Segment)
    cpdef tuple find(self, object offset)
