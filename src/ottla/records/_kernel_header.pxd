# What kernel_scan.py shares with kernel_header.py.

ctypedef long long Long
ctypedef const unsigned char *Octets

cdef unsigned int uint32(Octets p, Long pos) noexcept nogil
cdef Long int32(Octets p, Long pos) noexcept nogil
cdef Long int64(Octets p, Long pos) noexcept nogil
