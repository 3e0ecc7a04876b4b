"""Requests that benchmarks send over and over, and whether their answers are good ones."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.protocol import apis
from ottla.protocol.apis import Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_response, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.content import Record, build_batch

KIB, MIB = 1024, 1024 * 1024
RECORD_BYTES = 1000


@dataclass(frozen=True)
class Question:
    """A request for a topic that is made for it, and what a good answer is."""

    api: Api
    version: int
    message: Callable[[str], Message]
    check: Callable[[Any], object] = lambda _: None

    def encoded(self, topic: str) -> bytes:
        chunks = encode_request(self.api, self.version, 0, "bench", self.message(topic))
        return b"".join(chunks)  # type: ignore[arg-type]

    def check_answer(self, answer: bytes) -> None:
        """`answer` is a whole frame."""
        _, response = decode_response(self.api, self.version, answer[4:])
        self.check(response)


def api_versions() -> Question:
    return Question(apis.API_VERSIONS, 0, lambda _: ApiVersionsRequest())


def produce(value_bytes: int, acks: int = -1, partition: int = 0) -> Question:
    """One batch of records of at most a kilobyte each."""
    sizes = [RECORD_BYTES] * (value_bytes // RECORD_BYTES) or [value_bytes]
    now_ms = time.time_ns() // 1_000_000
    batch = build_batch([Record(at, now_ms, None, b"x" * size) for at, size in enumerate(sizes)])

    def message(topic: str) -> ProduceRequest:
        data = [PartitionProduceData(partition, batch)]
        return ProduceRequest(None, acks, 30_000, [TopicProduceData(topic, partition_data=data)])

    return Question(apis.PRODUCE, 7, message, lambda answer: _good(answer.responses[0].partition_responses))


def produce_to_all(partitions: int, value_bytes: int = 1000) -> Question:
    """One record for each of the topic's partitions, all in one request."""
    batch = build_batch([Record(0, time.time_ns() // 1_000_000, None, b"x" * value_bytes)])

    def message(topic: str) -> ProduceRequest:
        data = [PartitionProduceData(index, batch) for index in range(partitions)]
        return ProduceRequest(None, -1, 120_000, [TopicProduceData(topic, partition_data=data)])

    return Question(apis.PRODUCE, 7, message)


def fetch(size: int, fetch_offset: int = 0, max_wait_ms: int = 500, bytes_min: int = 32 * KIB) -> Question:
    """Up to `size` bytes of partition 0; fewer than `bytes_min` are no good answer."""

    def message(topic: str) -> FetchRequest:
        asked = FetchPartition(partition=0, fetch_offset=fetch_offset, partition_max_bytes=size)
        topics = [FetchTopic(topic, partitions=[asked])]
        return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=size, topics=topics)

    def check(answer: Any) -> None:
        _good(answer.responses[0].partitions)
        assert len(answer.responses[0].partitions[0].records or b"") >= bytes_min, (
            "the topic holds too little"
        )

    return Question(apis.FETCH, 11, message, check)


def offset_commit(group: str) -> Question:
    def message(topic: str) -> OffsetCommitRequest:
        committed = [OffsetCommitRequestPartition(0, 1)]
        return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=committed)])

    return Question(apis.OFFSET_COMMIT, 8, message, lambda answer: _good(answer.topics[0].partitions))


def _good(partitions: Any) -> None:
    (partition,) = partitions
    assert partition.error_code == 0, partition
