"""Offsets of partitions and what disks hold of them, as admin calls. Used by `admin`, `consumer`, `reading`.

Requests go to the leaders of partitions, one request per broker; a wrong leader is looked up again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from ottla.client import admin_topics
from ottla.client.addresses import Address
from ottla.client.admin_values import FoundOffset, LogDir, ReplicaSize
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker, ClusterView
from ottla.client.errors import UnknownPartition, broker_error, error_code
from ottla.client.offset_spec import Ago, AtTime, End, Exact, FromEnd, OffsetSpec, Start
from ottla.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import DELETE_RECORDS, DESCRIBE_LOG_DIRS, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

T = TypeVar("T")

_TOLD_MS_MAX = 1_000  # for so long an answer tells who leads; a leader that has moved is looked up anyway

Question = tuple[Address, dict[str, list[TopicPartition]]]


async def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], deadline_ms: int, *, read_committed: bool
) -> dict[TopicPartition, FoundOffset]:
    """The offsets of timestamps; negative ones are the special ones of `model.offsets`."""

    async def ask(
        address: Address, targets: dict[str, list[TopicPartition]]
    ) -> dict[TopicPartition, FoundOffset]:
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(read_committed),
            topics=[
                ListOffsetsTopic(
                    topic,
                    [
                        ListOffsetsPartition(target.partition, timestamp=timestamps[target])
                        for target in partitions
                    ],
                )
                for topic, partitions in targets.items()
            ],
            timeout_ms=max(deadline_ms - cluster.now_ms(), 1),
        )
        answer = await cluster.call(address, LIST_OFFSETS, request, ListOffsetsResponse, deadline_ms)
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                target = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code:
                    raise broker_error(partition.error_code, str(target))
                found[target] = _found(partition)
        return found

    return await ask_leaders(cluster, timestamps, ask, deadline_ms)


def _found(answer: ListOffsetsPartitionResponse) -> FoundOffset:
    return FoundOffset(
        offset=None if answer.offset < 0 else answer.offset,
        timestamp_ms=None if answer.timestamp < 0 else answer.timestamp,
        leader_epoch=None if answer.leader_epoch < 0 else answer.leader_epoch,
    )


async def ends(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    deadline_ms: int,
    *,
    read_committed: bool,
) -> dict[TopicPartition, int]:
    """The first (EARLIEST_TIMESTAMP) or the next (LATEST_TIMESTAMP) offset of each partition."""
    wanted = dict.fromkeys(partitions, timestamp)
    found = await list_offsets(cluster, wanted, deadline_ms, read_committed=read_committed)
    return {target: each.offset or 0 for target, each in found.items()}


async def resolve(
    cluster: Cluster,
    specs: Mapping[TopicPartition, OffsetSpec],
    deadline_ms: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Places as offsets, each between the partition's first offset and its end."""
    first = await ends(cluster, specs, EARLIEST_TIMESTAMP, deadline_ms, read_committed=read_committed)
    end = await ends(cluster, specs, LATEST_TIMESTAMP, deadline_ms, read_committed=read_committed)
    times = {target: spec.timestamp_ms for target, spec in specs.items() if isinstance(spec, AtTime)}
    now_ms = cluster.clock.wall_ms()
    times |= {target: now_ms - spec.duration_ms for target, spec in specs.items() if isinstance(spec, Ago)}
    timed = await list_offsets(cluster, times, deadline_ms, read_committed=read_committed) if times else {}
    offsets = {}
    for target, spec in specs.items():
        match spec:
            case Start():
                offset = first[target]
            case End():
                offset = end[target]
            case Exact(offset):
                pass
            case FromEnd(count):
                offset = end[target] - count
            case AtTime() | Ago():
                found = timed[target].offset
                offset = end[target] if found is None else found
        offsets[target] = min(max(offset, first[target]), end[target])
    return offsets


async def delete_records(
    cluster: Cluster, before: Mapping[TopicPartition, int], deadline_ms: int
) -> dict[TopicPartition, int]:
    async def ask(address: Address, targets: dict[str, list[TopicPartition]]) -> dict[TopicPartition, int]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    topic, [DeleteRecordsPartition(target.partition, before[target]) for target in partitions]
                )
                for topic, partitions in targets.items()
            ],
            timeout_ms=max(deadline_ms - cluster.now_ms(), 1),
        )
        answer = await cluster.call(address, DELETE_RECORDS, request, DeleteRecordsResponse, deadline_ms)
        starts = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                target = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code:
                    raise broker_error(partition.error_code, str(target))
                starts[target] = partition.low_watermark
        return starts

    return await ask_leaders(cluster, before, ask, deadline_ms)


async def epoch_ends(
    cluster: Cluster, epochs: Mapping[TopicPartition, int], deadline_ms: int
) -> dict[TopicPartition, int | None]:
    """Where each partition's leader epoch ended; None: the partition knows of no such epoch."""

    async def ask(
        address: Address, targets: dict[str, list[TopicPartition]]
    ) -> dict[TopicPartition, int | None]:
        request = OffsetForLeaderEpochRequest(
            -1,
            [
                OffsetForLeaderTopic(
                    topic,
                    [OffsetForLeaderPartition(target.partition, -1, epochs[target]) for target in partitions],
                )
                for topic, partitions in targets.items()
            ],
        )
        answer = await cluster.call(
            address, OFFSET_FOR_LEADER_EPOCH, request, OffsetForLeaderEpochResponse, deadline_ms
        )
        found: dict[TopicPartition, int | None] = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                target = TopicPartition(topic.topic, partition.partition)
                if partition.error_code:
                    raise broker_error(partition.error_code, str(target))
                found[target] = None if partition.end_offset < 0 else partition.end_offset
        return found

    return await ask_leaders(cluster, epochs, ask, deadline_ms)


async def log_dirs(cluster: Cluster, brokers: Iterable[Broker], deadline_ms: int) -> tuple[LogDir, ...]:
    found: list[LogDir] = []
    for broker in brokers:
        answer = await cluster.call(
            broker.address, DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(), DescribeLogDirsResponse, deadline_ms
        )
        if answer.error_code:
            raise broker_error(answer.error_code, f"broker {broker.id}")
        found += [_log_dir(broker.id, result) for result in answer.results]
    return tuple(found)


def _log_dir(broker_id: int, result: DescribeLogDirsResult) -> LogDir:
    return LogDir(
        broker_id=broker_id,
        path=result.log_dir,
        error=error_code(result.error_code),
        total_bytes=None if result.total_bytes < 0 else result.total_bytes,
        usable_bytes=None if result.usable_bytes < 0 else result.usable_bytes,
        replicas=tuple(
            ReplicaSize(
                topic.name, each.partition_index, each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in result.topics
            for each in topic.partitions
        ),
    )


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    ask: Callable[[Address, dict[str, list[TopicPartition]]], Awaitable[dict[TopicPartition, T]]],
    deadline_ms: int,
) -> dict[TopicPartition, T]:
    """Asks the leader of every partition until each has answered; no answer is asked for twice."""
    left = list(dict.fromkeys(partitions))
    answers: dict[TopicPartition, T] = {}
    known = _lately_told(cluster, left)

    async def round_of_questions(deadline_ms: int) -> None:
        nonlocal left, known
        seen, known = known, None
        if seen is None:
            seen = await admin_topics.view(cluster, sorted({target.topic for target in left}), deadline_ms)
        for address, targets in _by_leader(seen, left):
            answers.update(await ask(address, targets))
            left = [target for target in left if target not in answers]

    if left:
        await cluster.retry(round_of_questions, deadline_ms)
    return answers


def _lately_told(cluster: Cluster, partitions: Iterable[TopicPartition]) -> ClusterView | None:
    """What the caller asked a moment ago, if that names all leaders: most have asked for the topics first."""
    if cluster.told_at_ms is None or cluster.now_ms() - cluster.told_at_ms > _TOLD_MS_MAX:
        return None
    return cluster.told if all(cluster.told.leader(each) is not None for each in partitions) else None


def _by_leader(seen: ClusterView, partitions: Iterable[TopicPartition]) -> list[Question]:
    questions: dict[Address, dict[str, list[TopicPartition]]] = defaultdict(lambda: defaultdict(list))
    for target in partitions:
        topic = seen.topics.get(target.topic)
        if topic is not None and seen.partition(target) is None:
            raise UnknownPartition(target.topic, target.partition, len(topic.partitions))
        leader = seen.leader(target)
        if leader is None:
            raise seen.leaderless(target)
        questions[leader.address][target.topic].append(target)
    return list(questions.items())
