"""The text files beside the logs: offset checkpoints, `partition.metadata`, `.kafka_cleanshutdown`.

A checkpoint has a version line (0), a line with the number of entries, and a line per entry. All of them are
replaced atomically, so a damaged one is no trace of a power cut but of something else: CorruptData.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ottla.model.errors import CorruptData
from ottla.model.topics import TopicId, TopicPartition, parse_topic_id, topic_id_text

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_VERSION = "0"


def encode_lines(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return "".join(f"{line}\n" for line in [_VERSION, str(len(lines)), *lines]).encode("utf-8")


def decode_lines(data: bytes) -> list[list[str]]:
    """The fields of each entry. An empty file has none: Kafka creates checkpoints so."""
    lines = _text(data).splitlines()
    if not lines:
        return []
    if lines[0] != _VERSION:
        raise CorruptData(f"checkpoints have version {_VERSION}, this one {lines[0]!r}")
    entries = [line.split() for line in lines[2:]]
    if len(lines) > 1 and lines[1] != str(len(entries)):
        raise CorruptData(f"the checkpoint holds {len(entries)} entries instead of {lines[1]!r}")
    if not all(_is_number(field) for fields in entries for field in fields[-2:]):
        raise CorruptData("the checkpoint holds an entry without numbers")
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return encode_lines(f"{topic} {number} {offset}" for (topic, number), offset in offsets.items())


def decode_offsets(data: bytes) -> dict[TopicPartition, int]:
    offsets = {}
    for fields in decode_lines(data):
        if len(fields) != 3:
            raise CorruptData(f"a topic, a partition and an offset are expected, not {fields}")
        offsets[TopicPartition(fields[0], int(fields[1]))] = int(fields[2])
    return offsets


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {topic_id_text(topic_id)}".encode("ascii")


def decode_partition_metadata(data: bytes) -> TopicId:
    fields = dict(line.split(": ", 1) for line in _text(data).splitlines() if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise CorruptData(f"partition.metadata should name version 0 and a topic id, not {data[:80]!r}")
    try:
        return parse_topic_id(fields["topic_id"])
    except ValueError as error:
        raise CorruptData(f"partition.metadata: {error}") from error


def encode_clean_shutdown(broker_epoch: int = -1) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode("ascii")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptData(f"not a text file: {error}") from error


def _is_number(field: str) -> bool:
    return field.isascii() and field.removeprefix("-").isdigit()
