"""The answer to a Produce request all of whose batches were taken, straight into bytes.

Nearly all answers are such ones, and the general way (`messages.produce`) takes as long as appending a small
batch does. The tests want the same bytes of both.
"""

from __future__ import annotations

from ottla.protocol.frame_writer import FrameWriter
from ottla.server.produce_requests import ProduceTopic

_LOG_START_SINCE = 5
_RECORD_ERRORS_SINCE = 8
_FLEXIBLE_SINCE = 9
_IDS_SINCE = 13


def encode_taken(version: int, correlation_id: int, topics: list[ProduceTopic], throttle_ms: int) -> bytes:
    """The whole frame, its size first."""
    compact = version >= _FLEXIBLE_SINCE
    writer = FrameWriter(correlation_id, compact)
    writer.count(len(topics), compact)
    for topic in topics:
        if version >= _IDS_SINCE:
            writer.raw(topic.topic_id)
        else:
            writer.string(topic.name, compact)
        writer.count(len(topic.parts), compact)
        for part in topic.parts:
            writer.int32(part.index)
            writer.int16(0)  # no error
            writer.int64(part.base_offset)
            writer.int64(part.time_ms)
            if version >= _LOG_START_SINCE:
                writer.int64(part.log_start_offset)
            if version >= _RECORD_ERRORS_SINCE:
                writer.count(0, compact)
                if compact:
                    writer.uvarint(0)  # no message
                else:
                    writer.int16(-1)
            if compact:
                writer.uvarint(0)  # no tagged fields, here and below
        if compact:
            writer.uvarint(0)
    writer.int32(throttle_ms)
    if compact:
        writer.uvarint(0)
    return writer.frame()
