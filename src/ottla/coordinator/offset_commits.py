"""A commit as it is asked for, whether its group takes it, and the records it becomes."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.coordinator.consumer_group import ConsumerGroup, Wait
from ottla.coordinator.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    offset_record,
    plain_offset_record,
)
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.groups import Group
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode, Refused
from ottla.model.values import NamedTuple

MEMBER_EPOCHS_SINCE = 9  # of OffsetCommit


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
    group_id = commit.group_id
    records = []
    for topic, partition, offset, leader_epoch, metadata in commit.partitions:
        if metadata or expire_ms >= 0:
            key = OffsetCommitKey(group_id, topic, partition)
            value = OffsetCommitValue(offset, leader_epoch, metadata or "", wall_ms, expire_ms)
            records.append(offset_record(key, value))
        else:
            records.append(plain_offset_record(group_id, topic, partition, offset, leader_epoch, wall_ms))
    return records


def check_commit(group: Group, commit: Commit, now_ms: int, in_transaction: bool) -> None:
    """Refused when the group does not take it."""
    if commit.generation < 0 and group.state is GroupState.EMPTY:
        return  # a consumer that assigns partitions to itself, or an administrator
    is_by_member = commit.generation >= 0 or commit.member_id or commit.instance_id is not None
    if not is_by_member:
        if in_transaction:
            return  # an old producer, which does not say who it is in the group (KIP-447)
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        _check_member_epoch(group, commit, in_transaction)
        return
    member = group.check_member(commit.member_id, commit.instance_id)
    if commit.generation != group.generation:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.COMPLETING_REBALANCE and not in_transaction:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)  # which would be the end of a Java producer
    group.extend_session(member, now_ms)


def _check_member_epoch(group: ConsumerGroup, commit: Commit, in_transaction: bool) -> None:
    """Members of the new protocol commit with 9 or newer; producers do not know of stale epochs."""
    member = group.member(commit.member_id)
    if commit.version < MEMBER_EPOCHS_SINCE and member.classic is None and not in_transaction:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    if in_transaction and commit.generation != member.epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    group.check_epoch(commit.member_id, commit.generation)
    if group.is_awaited(Wait.SYNC, member.id) and not in_transaction:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)  # it has joined, and may read what is another's now
