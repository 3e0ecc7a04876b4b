cdef class Mailbox:
    cdef readonly object actions
    cdef object _bell
    cdef object _ringer
    cdef bint _is_rung

    cpdef silence(self)
    cpdef run(self)
