cimport cython

from ottla.server.exchange cimport RequestInFlight


@cython.locals(frames=dict)
cpdef object handle(RequestInFlight exchange, object services)
