"""Answers to Fetch that are written straight into bytes are those that the declared message gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ottla.log.file_range import FileRange
from ottla.log.system_files import SystemFiles
from ottla.log.txn_index import AbortedTransaction as Aborted
from ottla.model.topics import TopicId
from ottla.protocol.apis import FETCH
from ottla.protocol.codec import Chunk
from ottla.protocol.headers import encode_response
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from ottla.server.fetch_answers import Told, encode_told
from ottla.server.fetch_requests import Followed, TopicKey


def told_at_random(rng: random.Random, topic: TopicKey, index: int, records: FileRange | None) -> Told:
    told = Told(Followed(topic, index, -1, 0, -1, 0), None)
    told.high_watermark = rng.randrange(2**40)
    told.last_stable_offset = rng.randrange(2**40)
    told.log_start_offset = rng.randrange(2**40)
    if rng.random() < 0.5:
        told.aborted = [
            Aborted(rng.randrange(2**50), rng.randrange(2**50), 2**51, 0) for _ in range(rng.randrange(200))
        ]
    told.records = records
    return told


def as_message(told: Told, version: int) -> PartitionData:
    aborted = None
    if told.aborted is not None:
        aborted = [AbortedTransaction(each.producer_id, each.first_offset) for each in told.aborted]
    return PartitionData(
        told.followed.index,
        0,
        told.high_watermark,
        told.last_stable_offset,
        told.log_start_offset,
        aborted_transactions=aborted,
        records=told.records or b"",
    )


def joined(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk.read() if isinstance(chunk, FileRange) else bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(4, 19))
def test_they_are_the_bytes_of_the_message(version: int, tmp_path: Path) -> None:
    handle = SystemFiles().create(str(tmp_path / "records"))
    handle.append([random.Random(1).randbytes(100_000)])
    for seed in range(40):
        rng = random.Random(f"{version} {seed}")
        by_topic: dict[TopicKey, list[Told]] = {}
        for _ in range(rng.randrange(4)):
            topic: TopicKey = TopicId(rng.randbytes(16)) if version >= 13 else "t" * rng.randrange(200)
            by_topic[topic] = []
            for index in range(rng.choice((1, 2, 150))):
                size = rng.choice((0, 1, 4_096, 4_097, 90_000))
                records = FileRange(handle, rng.randrange(10_000), size) if size else None
                by_topic[topic].append(told_at_random(rng, topic, index, records))
        session_id = rng.randrange(2**31) if version >= 7 else 0
        topics = [
            FetchableTopicResponse(
                topic if isinstance(topic, str) else "",
                topic if isinstance(topic, bytes) else TopicId(bytes(16)),
                [as_message(told, version) for told in all_told],
            )
            for topic, all_told in by_topic.items()
        ]
        expected = encode_response(FETCH, version, seed, FetchResponse(5, 0, session_id, topics))
        written = encode_told(version, seed, 5, session_id, by_topic)
        assert joined(written) == joined(expected)
