# Numbers as protocols and files have them, written by modules that are compiled.

cdef extern from * nogil:
    """
    static inline void ottla_put_int(unsigned char *p, long long value) {
        p[0] = (unsigned char)(value >> 24);
        p[1] = (unsigned char)(value >> 16);
        p[2] = (unsigned char)(value >> 8);
        p[3] = (unsigned char)value;
    }

    static inline void ottla_put_long(unsigned char *p, long long value) {
        ottla_put_int(p, value >> 32);
        ottla_put_int(p + 4, value);
    }
    """
    void put_int "ottla_put_int"(unsigned char *p, long long value)
    void put_long "ottla_put_long"(unsigned char *p, long long value)
