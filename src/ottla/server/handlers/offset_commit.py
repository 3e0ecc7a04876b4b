"""OffsetCommit 2-10: stores how far a group has read; answered when that is as durable as acks=all.

- By a member of the current generation, or by anyone while the group has no members (-1 as generation).
- Up to 4 a commit may bring its own retention; from 10 on topics are named by id.
- Each partition has its own result; what concerns the group is said for each of them.
- A commit of very many partitions is taken in parts, each of them whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

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
from ottla.server.group_service import Groups
from ottla.server.group_topics import topic_name
from ottla.server.long_requests import PartOf, Work
from ottla.server.request_parts import PARTITIONS_AT_ONCE, count_of, joined, parts_of

if TYPE_CHECKING:
    from ottla.server.services import Services


Topics = Sequence[OffsetCommitRequestTopic]
Told = Sequence[OffsetCommitResponseTopic]


def handle(exchange: Exchange[OffsetCommitRequest], services: Services) -> OffsetCommitResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return OffsetCommitResponse(topics=_refusal(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    if count_of(request.topics) > PARTITIONS_AT_ONCE:
        services.long_requests.begin(PartOf(exchange), _commit_in_parts(exchange, services))
    else:

        def answer(told: Told) -> None:
            if not exchange.abandoned:
                exchange.answer(OffsetCommitResponse(topics=told))

        _commit(exchange, services, request.topics, answer)
    return None


def _commit_in_parts(exchange: Exchange[OffsetCommitRequest], services: Services) -> Work:
    parts = parts_of(exchange.request.topics)
    told: list[Told | None] = [None] * len(parts)

    def tell(number: int, topics: Told) -> None:
        told[number] = topics
        if None not in told and not exchange.abandoned:
            exchange.answer(OffsetCommitResponse(topics=joined(told)))

    for number, topics in enumerate(parts):
        yield None
        _commit(exchange, services, topics, partial(tell, number))


def _commit(
    exchange: Exchange[OffsetCommitRequest],
    services: Services,
    topics: Topics,
    answer: Callable[[Told], None],
) -> None:
    request = exchange.request
    groups = services.groups
    try:
        partition = groups.topic.find_writable(request.group_id)
        asked = _Asked(exchange, services, topics, partition, answer)
        if not asked.commits:
            answer(asked.told())
            return
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
        answer(_refusal(topics, code))


class _Asked:
    """Partitions of a request: those that can be committed, and what is said of the others."""

    def __init__(
        self,
        exchange: Exchange[OffsetCommitRequest],
        services: Services,
        topics: Topics,
        partition: Groups,
        answer: Callable[[Told], None],
    ) -> None:
        self._topics = topics
        self._answer = answer
        self._machine = partition.machine
        self._codes: list[list[ErrorCode]] = []  # for each partition of each topic
        self.commits: list[PartitionCommit] = []
        images = services.controller.image.topics
        for topic in topics:
            try:
                name = topic_name(exchange, services, Operation.READ, topic.name, topic.topic_id)
            except Refused as refusal:
                self._codes.append([refusal.code] * len(topic.partitions))
            else:
                self._codes.append(self._take(topic, name, len(images[name].partitions)))

    def _take(self, topic: OffsetCommitRequestTopic, name: str, partition_count: int) -> list[ErrorCode]:
        codes = []
        for each in topic.partitions:
            if not 0 <= each.partition_index < partition_count:
                codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            if self._machine.is_metadata_too_large(each.committed_metadata):
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
        self._answer(self.told(ErrorCode.NONE if refusal is None else refusal.code))

    def told(self, outcome: ErrorCode = ErrorCode.NONE) -> Told:
        """`outcome` is that of what could be committed."""
        return [
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [
                    OffsetCommitResponsePartition(each.partition_index, code or outcome)
                    for each, code in zip(topic.partitions, codes, strict=True)
                ],
            )
            for topic, codes in zip(self._topics, self._codes, strict=True)
        ]


def _refusal(topics: Topics, code: ErrorCode) -> Told:
    return [
        OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [OffsetCommitResponsePartition(each.partition_index, code) for each in topic.partitions],
        )
        for topic in topics
    ]
