cimport cython

from ottla.protocol.frame_writer cimport FrameWriter
from ottla.server.offset_commit_requests cimport CommitPart, CommitTopic


@cython.locals(compact=cython.bint, writer=FrameWriter, topic=CommitTopic, part=CommitPart)
cpdef bytes encode_codes(int version, long long correlation_id, list topics)
