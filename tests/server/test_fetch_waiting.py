"""Fetch that waits: until enough is there, its time is up, or there is nothing left to wait for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from calls import (
    NEWEST_FETCH,
    append,
    at,
    batch_of,
    create_topic,
    delete_topic,
    fetch_request,
    produce_request,
    told,
    topic_id_of,
    values_in,
)
from compat.waiting import eventually
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from wire import WireClient

LONG_MS = 60_000
SIZE = len(batch_of(b"x" * 100))


@pytest.mark.parametrize("version", [4, 7, 12, 13, 18])
@pytest.mark.parametrize("isolation_level", [0, 1])
def test_a_waiting_fetch_is_answered_when_a_record_comes(
    client: WireClient, reader: WireClient, version: int, isolation_level: int
) -> None:
    name = create_topic(client)
    topic = name if version < 13 else topic_id_of(client, name)
    request = fetch_request(topic, at(0), max_wait_ms=LONG_MS, isolation_level=isolation_level)
    reader.send(request, version)
    assert reader.is_silent(0.05)
    append(client, name, b"came")
    (data,) = told(reader.receive().responses)
    assert (values_in(data), data.high_watermark) == ([b"came"], 1)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_whatever_the_acks_of_the_producer_the_reader_is_woken(
    client: WireClient, reader: WireClient, acks: int
) -> None:
    topic = create_topic(client)
    reader.send(fetch_request(topic, at(0), max_wait_ms=LONG_MS), 12)
    client.send(produce_request(topic, batch_of(b"came"), acks=acks), 12)
    (data,) = told(reader.receive().responses)
    assert values_in(data) == [b"came"]


def test_min_bytes_counts_what_all_partitions_have(client: WireClient, reader: WireClient) -> None:
    topic = create_topic(client, partitions=3)
    request = fetch_request(topic, at(0, 0), at(0, 1), at(0, 2), max_wait_ms=LONG_MS, min_bytes=3 * SIZE)
    reader.send(request, 12)
    append(client, topic, b"x" * 100, partition=0)
    append(client, topic, b"x" * 100, partition=2)
    assert reader.is_silent(0.05)
    append(client, topic, b"x" * 100, partition=1)
    assert [len(values_in(data)) for data in told(reader.receive().responses)] == [1, 1, 1]


def test_when_the_time_is_up_the_answer_has_what_is_there(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"little")
    began = time.monotonic()
    request = fetch_request(topic, at(0), max_wait_ms=100, min_bytes=1_000_000)
    (data,) = told(client.call(request, 12).responses)
    assert time.monotonic() - began >= 0.099, "the broker counts whole milliseconds"
    assert values_in(data) == [b"little"]
    (data,) = told(client.call(fetch_request(topic, at(1), max_wait_ms=100), 12).responses)
    assert (data.error_code, data.records) == (ErrorCode.NONE, b"")


def test_min_bytes_0_does_not_wait(client: WireClient) -> None:
    topic = create_topic(client)
    request = fetch_request(topic, at(0), max_wait_ms=LONG_MS, min_bytes=0)
    assert client.call(request, 12).responses


def test_a_partition_that_fails_is_told_at_once(client: WireClient) -> None:
    topic = create_topic(client)
    request = fetch_request(topic, at(0), at(0, partition=1), max_wait_ms=LONG_MS, min_bytes=1_000)
    codes = [data.error_code for data in told(client.call(request, 12).responses)]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_divergence_is_told_at_once(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"v")
    request = fetch_request(topic, at(7, last_fetched_epoch=0), max_wait_ms=LONG_MS)
    (data,) = told(client.call(request, 12).responses)
    assert data.diverging_epoch.end_offset == 1


@pytest.mark.parametrize(
    ("version", "code"),
    [(4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    + [(version, ErrorCode.UNKNOWN_TOPIC_ID) for version in (13, 18)],
)
def test_a_topic_deleted_meanwhile_ends_the_wait(
    client: WireClient, reader: WireClient, version: int, code: ErrorCode
) -> None:
    name = create_topic(client)
    topic = name if version < 13 else topic_id_of(client, name)
    reader.send(fetch_request(topic, at(0), max_wait_ms=LONG_MS), version)
    assert reader.is_silent(0.05)
    delete_topic(client, name)
    (data,) = told(reader.receive().responses)
    assert data.error_code == code


def test_a_topic_deleted_and_made_anew_in_one_turn_does_not_strand_the_reader(tmp_path: Path) -> None:
    """It must be waiting before that happens, or it would wait for the new topic."""
    with (
        running_broker(tmp_path) as running,
        WireClient(running.bootstrap) as client,
        WireClient(running.bootstrap) as reader,
    ):
        topic = create_topic(client)
        reader.send(fetch_request(topic, at(0), max_wait_ms=LONG_MS), 12)
        assert eventually(lambda: running.metric("server.parked") == 1, LONG_MS / 1000)
        client.send_together(
            (DeleteTopicsRequest(topics=[DeleteTopicState(topic)]), 6),
            (CreateTopicsRequest([CreatableTopic(topic, 1, 1)]), 7),
        )
        assert client.receive().responses[0].error_code == ErrorCode.NONE
        assert client.receive().topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        reader.receive()


def test_later_requests_of_the_connection_wait_for_their_turn(client: WireClient, reader: WireClient) -> None:
    first, second = create_topic(client), create_topic(client)
    append(client, second, b"there")
    reader.send(fetch_request(first, at(0), max_wait_ms=LONG_MS), 12)
    reader.send(fetch_request(second, at(0)), 12)
    assert reader.is_silent(0.05)
    append(client, first, b"came")
    for expected in (b"came", b"there"):
        (data,) = told(reader.receive().responses)
        assert values_in(data) == [expected]


def test_all_readers_of_a_partition_are_woken(connect: Callable[[], WireClient], client: WireClient) -> None:
    topic = create_topic(client)
    readers = [connect() for _ in range(30)]
    for reader in readers:
        reader.send(fetch_request(topic_id_of(client, topic), at(0), max_wait_ms=LONG_MS), NEWEST_FETCH)
    append(client, topic, b"came")
    for reader in readers:
        (data,) = told(reader.receive().responses)
        assert values_in(data) == [b"came"]
