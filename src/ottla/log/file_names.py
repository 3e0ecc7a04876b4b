"""Names of the files and directories of a partition, as Kafka gives them."""

from __future__ import annotations

import os

from ottla.model.topics import TopicPartition, topic_name_problem

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

DELETED = ".deleted"  # renamed for a deferred removal
CLEANED = ".cleaned"  # a compacted segment that is not complete
SWAP = ".swap"  # a compacted segment that is complete and takes the place of others

SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

_DIRECTORY_NAME_BYTES_MAX = 255
_DELETE_DIRECTORY = "-delete"


def offset_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_offset(name: str) -> int | None:
    """The offset in front of the first dot, or None for a file that is not named after one."""
    digits = name.partition(".")[0]
    return int(digits) if len(digits) == 20 and digits.isascii() and digits.isdigit() else None


def parse_directory(name: str) -> TopicPartition | None:
    """The partition a directory belongs to, or None when it is not the directory of a live partition."""
    topic, dash, number = name.rpartition("-")
    if not dash or not (number.isascii() and number.isdigit()) or topic_name_problem(topic) is not None:
        return None
    return TopicPartition(topic, int(number))


def delete_directory_name(partition: TopicPartition) -> str:
    """A unique name under which the directory of a deleted partition waits for its removal."""
    suffix = f"-{partition.partition}.{os.urandom(16).hex()}{_DELETE_DIRECTORY}"
    return partition.topic[: _DIRECTORY_NAME_BYTES_MAX - len(suffix)] + suffix


def is_delete_directory(name: str) -> bool:
    return name.endswith(_DELETE_DIRECTORY) and "." in name
