"""The answer to a Produce request all of whose batches were taken, straight into bytes.

Nearly all answers are such ones, and the general way (`messages.produce`) takes as long as appending a small
batch does. The tests want the same bytes of both.
"""

from __future__ import annotations

from struct import Struct

from ottla.model.topics import TopicId
from ottla.protocol.primitives import write_uvarint

_FLEXIBLE_SINCE = 9
_IDS_SINCE = 13

# A partition: index, no error, base offset, append time; since 5 the log start; since 8 that no record was
# refused, and no message; since 9 these two in compact form, and no tagged fields.
_PARTITION = {version: Struct(">ihqq") for version in (3, 4)}
_PARTITION |= {version: Struct(">ihqqq") for version in (5, 6, 7)}
_PARTITION[8] = Struct(">ihqqqih")
_PARTITION |= {version: Struct(">ihqqqBBB") for version in range(9, 14)}
_BEHIND: dict[int, tuple[int, ...]] = {8: (0, -1)} | dict.fromkeys(range(9, 14), (1, 0, 0))

_HEAD = Struct(">iii")  # size, correlation id, number of topics
_RESPONSE_HEADER = Struct(">iix")
_COUNT = Struct(">i")
_LENGTH = Struct(">h")

TakenPart = tuple[int, int, int, int]
"""Partition, base offset, append time or -1, log start."""


def encode_taken(
    version: int, correlation_id: int, topics: list[tuple[str, TopicId, list[TakenPart]]], throttle_ms: int
) -> bytes:
    """The whole frame, its size first."""
    if version >= _FLEXIBLE_SINCE:
        return _encode_flexible(version, correlation_id, topics, throttle_ms)
    pack = _PARTITION[version].pack
    behind = _BEHIND.get(version, ())
    out = [b""]
    size = 12  # correlation id, number of topics, throttle time
    for name, _, parts in topics:
        encoded = name.encode()
        out += (_LENGTH.pack(len(encoded)), encoded, _COUNT.pack(len(parts)))
        size += 6 + len(encoded)
        for index, base_offset, time_ms, start in parts:
            if version < 5:
                data = pack(index, 0, base_offset, time_ms)
            else:
                data = pack(index, 0, base_offset, time_ms, start, *behind)
            out.append(data)
            size += len(data)
    out[0] = _HEAD.pack(size, correlation_id, len(topics))
    out.append(_COUNT.pack(throttle_ms))
    return b"".join(out)


def _encode_flexible(
    version: int, correlation_id: int, topics: list[tuple[str, TopicId, list[TakenPart]]], throttle_ms: int
) -> bytes:
    pack = _PARTITION[version].pack
    out = [b"", write_uvarint(len(topics) + 1)]
    for name, topic_id, parts in topics:
        if version >= _IDS_SINCE:
            out.append(topic_id)
        else:
            encoded = name.encode()
            out += (write_uvarint(len(encoded) + 1), encoded)
        out.append(write_uvarint(len(parts) + 1))
        for index, base_offset, time_ms, start in parts:
            out.append(pack(index, 0, base_offset, time_ms, start, 1, 0, 0))
        out.append(b"\0")  # tagged fields of the topic
    out += (_COUNT.pack(throttle_ms), b"\0")
    size = 5 + sum(map(len, out))
    out[0] = _RESPONSE_HEADER.pack(size, correlation_id)
    return b"".join(out)
