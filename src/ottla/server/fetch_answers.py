"""The answer to a Fetch request when no partition has anything but offsets and records to tell.

Nearly all answers are such ones; others go through the message (`messages.fetch`), which takes several times
as long. The tests want the same bytes of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log.file_range import FileRange
from ottla.log.txn_index import AbortedTransaction
from ottla.model.errors import Refused
from ottla.protocol.codec import Chunk
from ottla.protocol.frame_writer import FrameWriter
from ottla.protocol.messages.fetch import EpochEndOffset
from ottla.replica.partition import Partition
from ottla.server.fetch_requests import Followed

if TYPE_CHECKING:
    from ottla.server.fetch_requests import TopicKey

_LOG_START_SINCE = 5
_SESSIONS_SINCE = 7
_PREFERRED_REPLICA_SINCE = 11
_FLEXIBLE_SINCE = 12


class Told:
    """What an answer says of one partition."""

    __slots__ = (
        "aborted", "diverging", "error", "followed", "high_watermark", "last_stable_offset",
        "log_start_offset", "partition", "records",
    )  # fmt: skip

    def __init__(self, followed: Followed, partition: Partition | None) -> None:
        self.followed = followed
        self.partition = partition
        self.error: Refused | None = None
        self.diverging: EpochEndOffset | None = None
        self.high_watermark = -1
        self.last_stable_offset = -1
        self.log_start_offset = -1
        self.aborted: Sequence[AbortedTransaction] | None = None  # None: who reads everything is not told
        self.records: FileRange | None = None


def encode_told(
    version: int, correlation_id: int, throttle_ms: int, session_id: int, by_topic: dict[TopicKey, list[Told]]
) -> list[Chunk]:
    """The whole frame, its size first. Nothing that is told may be an error or a divergence."""
    compact = version >= _FLEXIBLE_SINCE
    writer = FrameWriter(correlation_id, compact)
    ranges: list[FileRange] = []
    places: list[int] = []  # where in what is written the ranges belong
    writer.int32(throttle_ms)
    if version >= _SESSIONS_SINCE:
        writer.int16(0)  # no error
        writer.int32(session_id)
    writer.count(len(by_topic), compact)
    for topic, all_told in by_topic.items():
        if isinstance(topic, str):
            writer.string(topic, compact)
        else:
            writer.raw(topic)
        writer.count(len(all_told), compact)
        for told in all_told:
            _write_offsets(writer, told, version, compact)
            _write_records(writer, told.records, compact, ranges, places)
            if compact:
                writer.uvarint(0)  # no tagged fields, here and below
        if compact:
            writer.uvarint(0)
    if compact:
        writer.uvarint(0)
    return _around(writer, ranges, places)


def _write_offsets(writer: FrameWriter, told: Told, version: int, compact: bool) -> None:
    writer.int32(told.followed.index)
    writer.int16(0)  # no error
    writer.int64(told.high_watermark)
    writer.int64(told.last_stable_offset)
    if version >= _LOG_START_SINCE:
        writer.int64(told.log_start_offset)
    if told.aborted is None:
        writer.count(-1, compact)
    else:
        writer.count(len(told.aborted), compact)
        for aborted in told.aborted:
            writer.int64(aborted.producer_id)
            writer.int64(aborted.first_offset)
            if compact:
                writer.uvarint(0)
    if version >= _PREFERRED_REPLICA_SINCE:
        writer.int32(-1)


def _write_records(
    writer: FrameWriter, records: FileRange | None, compact: bool, ranges: list[FileRange], places: list[int]
) -> None:
    if records is None:
        writer.count(0, compact)
        return
    writer.count(records.size, compact)
    ranges.append(records)
    places.append(writer.position)


def _around(writer: FrameWriter, ranges: list[FileRange], places: list[int]) -> list[Chunk]:
    """What was written, with the ranges at their places."""
    behind = 0
    for records in ranges:
        behind += records.size
    written = writer.frame(behind)
    if not ranges:
        return [written]
    chunks: list[Chunk] = []
    begin = 0
    for number, records in enumerate(ranges):
        end = places[number]
        chunks.append(written[begin:end])
        chunks.append(records)
        begin = end
    if begin < len(written):
        chunks.append(written[begin:])
    return chunks
