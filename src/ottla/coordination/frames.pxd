cimport cython


@cython.locals(size=Py_ssize_t)
cpdef bytes encode_frame(bytes payload, object tag)
