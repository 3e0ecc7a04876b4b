"""OffsetCommit 2-10: stores how far a group has read; answered when that is as durable as acks=all.

- By a member of the current generation, or by anyone while the group has no members (-1 as generation).
- Up to 4 a commit may bring its own retention; from 10 on topics are named by id.
- Each partition has its own result; what concerns the group is said for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.group_machine import GroupMachine
from ottla.coordinator.offset_commits import Commit, PartitionCommit
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.security.authorizer import Operation
from ottla.server.exchange import Exchange
from ottla.server.group_topics import topic_name

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[OffsetCommitRequest], services: Services) -> OffsetCommitResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return _refusal(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = services.groups
    try:
        partition = groups.topic.find_writable(request.group_id)
        asked = _Asked(exchange, services, partition.machine)
        if not asked.commits:
            return asked.response()
        commit = Commit(
            exchange.version,
            request.group_id,
            request.generation_id_or_member_epoch,
            request.member_id,
            request.group_instance_id,
            request.retention_time_ms,
            asked.commits,
        )
        records = partition.machine.commit(commit, groups.now)
        partition.write(records, asked.written)
        groups.set_timer(partition, request.group_id)
    except Refused as refusal:
        code = refusal.code
        if code is ErrorCode.RECORD_LIST_TOO_LARGE:
            code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        return _refusal(request, code)
    return None


class _Asked:
    """A request's partitions: those that can be committed, and what is said of the others."""

    def __init__(
        self, exchange: Exchange[OffsetCommitRequest], services: Services, machine: GroupMachine
    ) -> None:
        self._exchange = exchange
        self._codes: list[list[ErrorCode]] = []  # for each partition of each topic
        self.commits: list[PartitionCommit] = []
        for topic in exchange.request.topics:
            try:
                name = topic_name(exchange, services, Operation.READ, topic.name, topic.topic_id)
            except Refused as refusal:
                self._codes.append([refusal.code] * len(topic.partitions))
            else:
                self._codes.append(self._take(topic, name, machine))

    def _take(self, topic: OffsetCommitRequestTopic, name: str, machine: GroupMachine) -> list[ErrorCode]:
        codes = []
        for each in topic.partitions:
            if machine.is_metadata_too_large(each.committed_metadata):
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            codes.append(ErrorCode.NONE)
            self.commits.append(
                PartitionCommit(
                    name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                )
            )
        return codes

    def written(self, refusal: Refused | None) -> None:
        if not self._exchange.abandoned:
            self._exchange.answer(self.response(ErrorCode.NONE if refusal is None else refusal.code))

    def response(self, outcome: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
        """`outcome` is that of what could be committed."""
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    topic.name,
                    topic.topic_id,
                    [
                        OffsetCommitResponsePartition(each.partition_index, code or outcome)
                        for each, code in zip(topic.partitions, codes, strict=True)
                    ],
                )
                for topic, codes in zip(self._exchange.request.topics, self._codes, strict=True)
            ]
        )


def _refusal(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )
