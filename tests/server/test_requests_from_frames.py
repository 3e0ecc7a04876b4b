"""Produce, Fetch and OffsetCommit, read straight from their frames, are what the declared messages say; and
whatever else a peer sends is left to those.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ottla.model.errors import Malformed
from ottla.protocol.codec import decode, encode_bytes
from ottla.protocol.fields import Message
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.offset_commit import OffsetCommitRequest
from ottla.protocol.messages.produce import ProduceRequest
from ottla.server import fetch_requests, offset_commit_requests, produce_requests
from protocol.random_messages import random_message

VERSIONS = [
    *((ProduceRequest, version) for version in range(3, 14)),
    *((FetchRequest, version) for version in range(4, 19)),
    *((OffsetCommitRequest, version) for version in range(2, 11)),
]
IDS = [f"{message_type.__name__}-v{version}" for message_type, version in VERSIONS]
READERS: dict[type[Message], Any] = {
    ProduceRequest: produce_requests,
    FetchRequest: fetch_requests,
    OffsetCommitRequest: offset_commit_requests,
}
COUNTS = (-1, -2, 2**31 - 1, -(2**31), 30_001)


def read_usual(message_type: type[Message]) -> Callable[[memoryview, int, int], Any]:
    return READERS[message_type].read_usual  # type: ignore[no-any-return]


def fields(work: Any) -> Any:
    """Everything that a request says, comparable."""
    if isinstance(work, produce_requests.ProduceWork):
        topics = [
            (topic.name, topic.topic_id, [(part.index, part.records) for part in topic.parts])
            for topic in work.topics
        ]
        return work.transactional_id, work.acks, work.timeout_ms, topics
    if isinstance(work, offset_commit_requests.CommitWork):
        commits = [
            (
                topic.name,
                topic.topic_id,
                [(part.index, part.offset, part.leader_epoch, part.metadata) for part in topic.partitions],
            )
            for topic in work.topics
        ]
        by = (work.group_id, work.generation, work.member_id, work.instance_id)
        return *by, work.retention_ms, work.partition_count, commits
    assert isinstance(work, fetch_requests.FetchWork)
    asked = [
        (
            each.topic,
            each.index,
            each.current_leader_epoch,
            each.fetch_offset,
            each.last_fetched_epoch,
            each.bytes_max,
        )
        for each in work.followed
    ]
    limits = (work.wait_ms_max, work.bytes_min, work.bytes_max, work.is_committed)
    return work.replica_id, limits, work.session_id, work.session_epoch, asked, work.forgotten


def declared(message_type: type[Message], version: int, frame: memoryview, position: int) -> Any:
    """What the message says of the same bytes; None: it is malformed."""
    try:
        message, _ = decode(message_type, version, frame, position)
    except Malformed:
        return None
    if isinstance(message, ProduceRequest):
        return fields(produce_requests.of_message(message))
    if isinstance(message, OffsetCommitRequest):
        return fields(offset_commit_requests.of_message(message))
    assert isinstance(message, FetchRequest)
    return fields(fetch_requests.of_message(message, version))


def check(message_type: type[Message], version: int, data: bytes) -> bool:
    """Whether the frame was read; if so, it says the same both ways."""
    frame = memoryview(b"head" + data)
    work = read_usual(message_type)(frame, 4, version)
    if work is None:
        return False
    assert fields(work) == declared(message_type, version, frame, 4)
    return True


def usual(rng: random.Random, message_type: type[Message], version: int) -> Message:
    """One that needs no other way: nothing tagged, nothing forgotten."""
    message = random_message(rng, message_type, version)
    if not isinstance(message, FetchRequest):
        return message
    plain = FetchRequest(
        replica_id=message.replica_id,
        max_wait_ms=message.max_wait_ms,
        min_bytes=message.min_bytes,
        max_bytes=message.max_bytes,
        isolation_level=message.isolation_level,
        session_id=message.session_id,
        session_epoch=message.session_epoch,
        topics=message.topics,
        rack_id=message.rack_id,
    )
    for topic in plain.topics:
        for asked in topic.partitions:
            defaults = type(asked)()
            asked.replica_directory_id = defaults.replica_directory_id  # type: ignore[misc]
            asked.high_watermark = defaults.high_watermark  # type: ignore[misc]
    return plain


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=IDS)
def test_usual_requests_say_the_same_both_ways(message_type: type[Message], version: int) -> None:
    for seed in range(60):
        message = usual(random.Random(f"{version} {seed}"), message_type, version)
        assert check(message_type, version, encode_bytes(message, version)), message
        assert check(message_type, version, encode_bytes(message, version) + b"more")


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=IDS)
def test_other_requests_are_left_alone_or_say_the_same(message_type: type[Message], version: int) -> None:
    for seed in range(60):
        message = random_message(random.Random(f"{version} {seed}"), message_type, version)
        check(message_type, version, encode_bytes(message, version))


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=IDS)
def test_a_request_that_is_cut_anywhere_is_left_alone(message_type: type[Message], version: int) -> None:
    rng = random.Random(version)
    data = max((encode_bytes(usual(rng, message_type, version), version) for _ in range(8)), key=len)
    for end in range(len(data)):
        assert not check(message_type, version, data[:end])


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=IDS)
def test_hostile_bytes_are_left_alone_or_say_the_same(message_type: type[Message], version: int) -> None:
    for seed in range(300):
        rng = random.Random(f"{version} {seed}")
        data = bytearray(encode_bytes(usual(rng, message_type, version), version))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at : at + 4] = rng.choice(COUNTS).to_bytes(4, "big", signed=True)
            else:
                data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        check(message_type, version, bytes(data))


@pytest.mark.parametrize(("message_type", "version"), VERSIONS, ids=IDS)
def test_random_bytes_are_left_alone_or_say_the_same(message_type: type[Message], version: int) -> None:
    rng = random.Random(version)
    for size in range(200):
        check(message_type, version, rng.randbytes(size))
