"""A transaction waits for the disk a fixed number of times, however many partitions it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import create_topic, end_offset
from compat.waiting import eventually
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.server import transaction_service
from transaction_calls import NEW_PRODUCE, Producer
from wire import WireClient

MANY = 30


@pytest.fixture
def notes_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note that a transaction is done goes with another write, or not at all."""
    monkeypatch.setattr(transaction_service, "_NOTE_MS_MAX", 3_600_000)


@pytest.mark.usefixtures("notes_wait")
def test_a_transaction_waits_for_the_disk_as_often_over_many_partitions_as_over_one(tmp_path: Path) -> None:
    """Twice to write (the coordinator knows the partitions; the records are there), twice to end."""
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=MANY)
        producer = Producer(client)
        rounds = [sync_rounds(running, producer, topic, count) for count in (1, MANY, 1, MANY)]
    assert rounds == [4, 4, 4, 4]


def sync_rounds(running: InProcessBroker, producer: Producer, topic: str, partitions: int) -> float:
    before = running.metric("log.sync_round.time.count")
    commit(producer, topic, partitions)
    assert eventually(lambda: running.on_owner(lambda: not running.broker._rounds.is_busy), 30)
    return running.metric("log.sync_round.time.count") - before


def commit(producer: Producer, topic: str, partitions: int) -> None:
    request = producer.produce_request(topic, *[b"v"] * partitions)
    answers = producer.client.call(request, NEW_PRODUCE).responses[0].partition_responses
    assert [each.error_code for each in answers] == [ErrorCode.NONE] * partitions
    assert producer.end().error_code == ErrorCode.NONE


def test_the_note_that_a_transaction_is_done_does_not_wait_for_another_for_ever(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        producer = Producer(client)
        commit(producer, create_topic(client), 1)
        state = running.on_owner(lambda: running.broker._services.transactions.topic.find(producer.name))
        # The producer's id, its partition, its end, and that this is done.
        assert eventually(lambda: running.on_owner(lambda: state.partition.high_watermark) == 4, 30)


@pytest.mark.usefixtures("notes_wait")
def test_a_broker_that_stops_notes_what_is_done(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        producer = Producer(client)
        commit(producer, topic, 1)
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        producer.client = client
        assert eventually(lambda: producer.described().error_code == ErrorCode.NONE, 30), "loaded"
        assert producer.described().transaction_state == "CompleteCommit"
        assert end_offset(client, topic) == 2, "a record and its marker, which was not written again"
