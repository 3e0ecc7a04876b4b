"""OffsetCommit 2-10: stores how far a group has read; answered when that is as durable as acks=all.

- By a member of the current generation, or by anyone while the group has no members (-1 as generation).
- Up to 4 a commit may bring its own retention; from 10 on topics are named by id.
- Each partition has its own result; what concerns the group is said for each of them.
- A commit of very many partitions is taken in parts, each of them whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.coordinator.group_machine import GroupMachine
from ottla.coordinator.offset_commits import Commit, PartitionCommit
from ottla.model.errors import ErrorCode, Refused
from ottla.security.authorizer import Operation
from ottla.server.exchange import Exchange
from ottla.server.group_topics import topic_name
from ottla.server.long_requests import PartOf, Work
from ottla.server.offset_commit_answers import encode_codes
from ottla.server.offset_commit_requests import CommitPart, CommitTopic, CommitWork
from ottla.server.request_parts import PARTITIONS_AT_ONCE, parts_of

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[CommitWork], services: Services) -> None:
    work = exchange.request
    if not exchange.may(work.group_id):
        _refuse(work.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        _finish(exchange)
    elif work.partition_count > PARTITIONS_AT_ONCE:
        services.long_requests.begin(PartOf(exchange), _commit_in_parts(exchange, services))
    else:
        _commit(exchange, services, work.topics)


def _commit_in_parts(exchange: Exchange[CommitWork], services: Services) -> Work:
    parts = parts_of(exchange.request.topics, _part_of)
    exchange.request.unfinished = len(parts)
    for topics in parts:
        yield None
        _commit(exchange, services, topics)


def _part_of(topic: CommitTopic, partitions: Sequence[CommitPart]) -> CommitTopic:
    return CommitTopic(topic.name, topic.topic_id, list(partitions))


def _commit(exchange: Exchange[CommitWork], services: Services, topics: list[CommitTopic]) -> None:
    work = exchange.request
    groups = services.groups
    try:
        partition = groups.topic.find_writable(work.group_id)
        commits = _take(exchange, services, topics, partition.machine)
        if not commits:
            _finish(exchange)
            return
        commit = Commit(
            exchange.version,
            work.group_id,
            work.generation,
            work.member_id,
            work.instance_id,
            work.retention_ms,
            commits,
        )
        records = partition.machine.commit(commit, groups.now)
        partition.write(records, partial(_written, exchange, topics))
        groups.set_timer(partition, work.group_id)
    except Refused as refusal:
        code = refusal.code
        if code is ErrorCode.RECORD_LIST_TOO_LARGE:
            code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        _refuse(topics, code)
        _finish(exchange)


def _take(
    exchange: Exchange[CommitWork], services: Services, topics: list[CommitTopic], machine: GroupMachine
) -> list[PartitionCommit]:
    """What can be committed; the others get their codes."""
    commits = []
    images = services.controller.image.topics
    for topic in topics:
        try:
            name = topic_name(exchange, services, Operation.READ, topic.name, topic.topic_id)
        except Refused as refusal:
            _refuse([topic], refusal.code)
            continue
        partition_count = len(images[name].partitions)
        for part in topic.partitions:
            if not 0 <= part.index < partition_count:
                part.code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif part.metadata and machine.is_metadata_too_large(part.metadata):
                part.code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                commits.append(
                    PartitionCommit(name, part.index, part.offset, part.leader_epoch, part.metadata)
                )
    return commits


def _refuse(topics: list[CommitTopic], code: ErrorCode) -> None:
    for topic in topics:
        for part in topic.partitions:
            part.code = code


def _written(exchange: Exchange[CommitWork], topics: list[CommitTopic], refusal: Refused | None) -> None:
    """What could be committed is durable, or lost."""
    if refusal is not None:
        for topic in topics:
            for part in topic.partitions:
                part.code = part.code or refusal.code
    _finish(exchange)


def _finish(exchange: Exchange[CommitWork]) -> None:
    """A part of the request has come to something; with the last one it is answered."""
    work = exchange.request
    work.unfinished -= 1
    if not work.unfinished and not exchange.connection.closed:
        frame = encode_codes(exchange.version, exchange.correlation_id, work.topics)
        exchange.answer_with(frame, exchange.services.clock.monotonic_us())
