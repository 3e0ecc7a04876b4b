"""A commit as it is asked for, and the records it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordinator.group_records import OffsetCommitKey, OffsetCommitValue, offset_record
from ottla.coordinator.state_log import StateRecord


class PartitionCommit(NamedTuple):
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class Commit(NamedTuple):
    version: int
    group_id: str
    generation: int  # negative: not by a member
    member_id: str
    instance_id: str | None
    retention_ms: int  # -1: the broker's
    partitions: Sequence[PartitionCommit]


def commit_records(commit: Commit, wall_ms: int) -> list[StateRecord]:
    expire_ms = wall_ms + commit.retention_ms if commit.retention_ms >= 0 else -1
    return [
        offset_record(
            OffsetCommitKey(commit.group_id, each.topic, each.partition),
            OffsetCommitValue(each.offset, each.leader_epoch, each.metadata or "", wall_ms, expire_ms),
        )
        for each in commit.partitions
    ]
