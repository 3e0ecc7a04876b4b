"""Topics for a measurement: made, filled, deleted, on any broker that speaks the protocol."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peer import Peer
from benchmarks.questions import KIB, MIB, RECORD_BYTES, produce

from ottla.protocol import apis
from ottla.protocol.fields import Message
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

_CONFIGS = [CreatableTopicConfig("max.message.bytes", str(4 * MIB))]
_USABLE_SECONDS_MAX = 600
_GONE_SECONDS_MAX = 5
_PORTION = 2_000
FILL_BATCH_BYTES = 64 * KIB  # of `fill`
FILL_BATCH_RECORDS = FILL_BATCH_BYTES // RECORD_BYTES


@contextmanager
def topic(address: str, data: Path, partitions: int = 1) -> Iterator[str]:
    """Its name. When it is deleted its files are waited for, so that they do not weigh on what comes next."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    peer = Peer(address)
    create(peer, name, partitions)
    await_usable(peer, name, partitions)
    try:
        yield name
    finally:
        peer.call(apis.DELETE_TOPICS, 1, DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000))
        peer.socket.close()
        deadline = time.monotonic() + _GONE_SECONDS_MAX
        while any(data.rglob(f"{name}-*")) and time.monotonic() < deadline:
            time.sleep(0.05)


def create(peer: Peer, name: str, partitions: int) -> None:
    """In portions, since Kafka does not make ten thousand partitions at once."""
    peer.socket.settimeout(_USABLE_SECONDS_MAX)
    count = min(partitions, _PORTION)
    topic = CreatableTopic(name, num_partitions=count, replication_factor=1, configs=_CONFIGS)
    answer = peer.call(apis.CREATE_TOPICS, 5, CreateTopicsRequest([topic], timeout_ms=300_000))
    assert answer.topics[0].error_code == 0, answer.topics[0]
    while count < partitions:
        count = min(partitions, count + _PORTION)
        grown = CreatePartitionsTopic(name, count, None)
        answer = peer.call(apis.CREATE_PARTITIONS, 2, CreatePartitionsRequest([grown], timeout_ms=300_000))
        assert answer.results[0].error_code == 0, answer.results[0]


def await_usable(peer: Peer, name: str, partitions: int) -> None:
    """Until every partition has a leader and the last one takes a record: Kafka answers before that."""
    deadline = time.monotonic() + _USABLE_SECONDS_MAX
    question = produce(10, partition=partitions - 1)
    while not _has_leaders(peer, name, partitions) or not _takes(peer, question.message(name)):
        assert time.monotonic() < deadline, f"{name} cannot be written to"
        time.sleep(0.02)


def _has_leaders(peer: Peer, name: str, partitions: int) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    (found,) = peer.call(apis.METADATA, 8, request).topics
    led = [each for each in found.partitions if each.leader_id >= 0]
    return len(led) == partitions


def _takes(peer: Peer, request: Message) -> bool:
    answer = peer.call(apis.PRODUCE, 7, request)
    return bool(answer.responses[0].partition_responses[0].error_code == 0)


def fill(address: str, name: str, size: int) -> None:
    peer = Peer(address)
    question = produce(FILL_BATCH_BYTES)
    for _ in range(-(-size // FILL_BATCH_BYTES)):
        question.check(peer.call(apis.PRODUCE, 7, question.message(name)))
    peer.socket.close()


def drop_pages(data: Path, name: str) -> None:
    """Nothing of the topic's first partition is in memory then."""
    for path in data.rglob(f"{name}-0/*"):
        with path.open("rb") as file:
            os.fsync(file.fileno())  # only what is on disk can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
