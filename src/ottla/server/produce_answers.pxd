cimport cython

from ottla.protocol.frame_writer cimport FrameWriter
from ottla.server.produce_requests cimport ProducePart, ProduceTopic


@cython.locals(compact=cython.bint, writer=FrameWriter, topic=ProduceTopic, part=ProducePart)
cpdef bytes encode_taken(int version, long long correlation_id, list topics, long long throttle_ms)
