"""The answer to an OffsetCommit request, straight into bytes: a code for each of its partitions.

The tests want the same bytes as of the message (`messages.offset_commit`).
"""

from __future__ import annotations

from ottla.protocol.frame_writer import FrameWriter
from ottla.server.offset_commit_requests import CommitTopic

_THROTTLING_SINCE = 3
_FLEXIBLE_SINCE = 8
_IDS_SINCE = 10


def encode_codes(version: int, correlation_id: int, topics: list[CommitTopic]) -> bytes:
    """The whole frame, its size first."""
    compact = version >= _FLEXIBLE_SINCE
    writer = FrameWriter(correlation_id, compact)
    if version >= _THROTTLING_SINCE:
        writer.int32(0)  # commits are not throttled
    writer.count(len(topics), compact)
    for topic in topics:
        if version >= _IDS_SINCE:
            writer.raw(topic.topic_id)
        else:
            writer.string(topic.name, compact)
        writer.count(len(topic.partitions), compact)
        for part in topic.partitions:
            writer.int32(part.index)
            writer.int16(part.code)
            if compact:
                writer.uvarint(0)  # no tagged fields, here and below
        if compact:
            writer.uvarint(0)
    if compact:
        writer.uvarint(0)
    return writer.frame()
