"""The calls that most tests of the wire need, each in one line."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence

from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from ottla.records.content import Record, build_batch, records_of
from ottla.records.formats import scan
from wire import WireClient

NEWEST_PRODUCE = 13
NEWEST_NAMED_PRODUCE = 12  # the last version that names topics by name
NEWEST_FETCH = 18
NEWEST_NAMED_FETCH = 12
NOW_MS = time.time_ns() // 1_000_000  # as good as any time, but not so old that retention takes it away
LATEST = -1
EARLIEST = -2

_numbers = itertools.count()


def unique_name(label: str = "topic") -> str:
    return f"{label}-{os.getpid()}-{next(_numbers)}"


# -- topics ----------------------------------------------------------------------------------------------


def create_topic(
    client: WireClient,
    name: str | None = None,
    *,
    partitions: int = 1,
    configs: Mapping[str, str] | None = None,
) -> str:
    name = name or unique_name()
    topic = CreatableTopic(
        name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[CreatableTopicConfig(*config) for config in (configs or {}).items()],
    )
    (result,) = client.call(CreateTopicsRequest(topics=[topic]), 7).topics
    assert result.error_code == ErrorCode.NONE, result
    return name


def delete_topic(client: WireClient, name: str) -> None:
    (result,) = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name)]), 6).responses
    assert result.error_code == ErrorCode.NONE, result


def describe_topic(client: WireClient, name: str, version: int = 13) -> MetadataResponseTopic:
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (topic,) = client.call(request, version).topics
    assert isinstance(topic, MetadataResponseTopic)
    return topic


def topic_id_of(client: WireClient, name: str) -> TopicId:
    topic_id = describe_topic(client, name).topic_id
    assert topic_id != NO_TOPIC_ID
    return topic_id


# -- writing ---------------------------------------------------------------------------------------------


def batch_of(
    *values: bytes,
    key: bytes | None = b"k",
    timestamp: int = NOW_MS,
    codec: int = 0,
    producer: tuple[int, int] = (-1, -1),  # id and epoch
    sequence: int = -1,
    flags: int = 0,
) -> bytes:
    return build_batch(
        (Record(offset, timestamp, key, value) for offset, value in enumerate(values)),
        codec=codec,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=sequence,
        flags=flags,
    )


def produce_request(
    topic: str | TopicId,
    *batches: bytes | None,
    partition: int = 0,
    acks: int = -1,
    timeout_ms: int = 30_000,
) -> ProduceRequest:
    """One batch for each partition from `partition` on."""
    data = [PartitionProduceData(index, batch) for index, batch in enumerate(batches, partition)]
    named = TopicProduceData(name=topic) if isinstance(topic, str) else TopicProduceData(topic_id=topic)
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(named.name, named.topic_id, data)],
    )


def produce(
    client: WireClient,
    topic: str | TopicId,
    batch: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int | None = None,
) -> PartitionProduceResponse:
    """The answer for the one partition."""
    if version is None:
        version = NEWEST_NAMED_PRODUCE if isinstance(topic, str) else NEWEST_PRODUCE
    response = client.call(produce_request(topic, batch, partition=partition, acks=acks), version)
    (answer,) = response.responses[0].partition_responses
    assert isinstance(answer, PartitionProduceResponse)
    return answer


def append(client: WireClient, topic: str, *values: bytes, partition: int = 0) -> int:
    """Writes the values in one batch and returns their first offset."""
    answer = produce(client, topic, batch_of(*values), partition=partition)
    assert answer.error_code == ErrorCode.NONE, answer
    return answer.base_offset


def new_producer(client: WireClient) -> tuple[int, int]:
    answer = client.call(InitProducerIdRequest(), 4)
    assert answer.error_code == ErrorCode.NONE, answer
    return answer.producer_id, answer.producer_epoch


# -- reading ---------------------------------------------------------------------------------------------


def fetch_request(
    topic: str | TopicId,
    *partitions: FetchPartition,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 2**31 - 1,
    isolation_level: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
) -> FetchRequest:
    named = FetchTopic(topic=topic) if isinstance(topic, str) else FetchTopic(topic_id=topic)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[FetchTopic(named.topic, named.topic_id, partitions)] if partitions else [],
    )


def at(offset: int, partition: int = 0, bytes_max: int = 2**20, **rest: int) -> FetchPartition:
    return FetchPartition(partition, fetch_offset=offset, partition_max_bytes=bytes_max, **rest)


def fetch(
    client: WireClient, topic: str | TopicId, *partitions: FetchPartition, version: int | None = None
) -> list[PartitionData]:
    """What the partitions give at once, without a session."""
    if version is None:
        version = NEWEST_NAMED_FETCH if isinstance(topic, str) else NEWEST_FETCH
    response = client.call(fetch_request(topic, *partitions), version)
    assert response.error_code == ErrorCode.NONE, response
    return told(response.responses)


def told(topics: Sequence[FetchableTopicResponse]) -> list[PartitionData]:
    return [partition for topic in topics for partition in topic.partitions]


def batches_in(data: PartitionData) -> list[bytes]:
    """The whole batches of an answer, byte for byte."""
    records = bytes(data.records or b"")  # type: ignore[arg-type]
    return [records[position : position + header.size] for position, header in scan(records)]


def values_in(data: PartitionData) -> list[bytes | None]:
    return [record.value for batch in batches_in(data) for record in records_of(batch)]


def values_from(client: WireClient, topic: str, offset: int = 0, partition: int = 0) -> list[bytes | None]:
    """Every value from `offset` up to the end as it is now, in as many fetches as that takes."""
    values: list[bytes | None] = []
    end = end_offset(client, topic, partition)
    while offset < end:
        (data,) = fetch(client, topic, at(offset, partition))
        assert data.error_code == ErrorCode.NONE, data
        found = [record for batch in batches_in(data) for record in records_of(batch)]
        values += [record.value for record in found if record.offset >= offset]
        offset = found[-1].offset + 1
    return values


# -- groups ----------------------------------------------------------------------------------------------


def commit_request(
    group: str, topic: str, offset: int, *, partition: int = 0, metadata: str | None = None
) -> OffsetCommitRequest:
    """By no member of the group."""
    committed = OffsetCommitRequestPartition(partition, offset, committed_metadata=metadata)
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[committed])])


def list_offset(
    client: WireClient,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    version: int = 11,
    epoch: int = -1,
    isolation_level: int = 0,
) -> ListOffsetsPartitionResponse:
    asked = ListOffsetsPartition(partition, epoch, timestamp)
    request = ListOffsetsRequest(-1, isolation_level, [ListOffsetsTopic(topic, [asked])])
    (answer,) = client.call(request, version).topics[0].partitions
    assert isinstance(answer, ListOffsetsPartitionResponse)
    return answer


def end_offset(client: WireClient, topic: str, partition: int = 0) -> int:
    return list_offset(client, topic, LATEST, partition=partition).offset
