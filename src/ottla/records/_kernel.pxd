# What the compiled kernels share: the types of kernel.py, and the functions of it that the others call.

ctypedef long long Long
ctypedef const unsigned char *Octets
ctypedef unsigned char *Room

cdef (Long, Long) varint(Octets p, Long pos, Long end) noexcept nogil
cdef (Long, Long) varlong(Octets p, Long pos, Long end) noexcept nogil
cdef (Long, Long, Long, Long, Long, Long, Long, Long, Long) record_at(Octets p, Long pos, Long end) noexcept nogil
cdef bint sum_fits(Long base, Long delta) noexcept nogil
cdef Long zigzag_size(Long value) noexcept nogil
cdef Long put_varint(Room p, Long pos, Long value) noexcept nogil
cdef Room start_of(bytearray out)
cdef Long murmur2_at(Octets p, Long pos, Long size) noexcept nogil
