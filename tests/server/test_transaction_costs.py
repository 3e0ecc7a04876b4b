"""A transaction waits for the disk a fixed number of times, however many partitions it has."""

from __future__ import annotations

from pathlib import Path

from calls import create_topic
from compat.waiting import eventually
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from transaction_calls import NEW_PRODUCE, Producer
from wire import WireClient

MANY = 30


def test_a_transaction_waits_for_the_disk_as_often_over_many_partitions_as_over_one(tmp_path: Path) -> None:
    """Twice to write (the coordinator knows the partitions; the records are there), three times to end."""
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client, partitions=MANY)
        producer = Producer(client)
        rounds = {count: sync_rounds(running, producer, topic, count) for count in (1, MANY)}
    assert rounds == {1: 5, MANY: 5}


def sync_rounds(running: InProcessBroker, producer: Producer, topic: str, partitions: int) -> float:
    before = running.metric("log.sync_round.time.count")
    request = producer.produce_request(topic, *[b"v"] * partitions)
    answers = producer.client.call(request, NEW_PRODUCE).responses[0].partition_responses
    assert [each.error_code for each in answers] == [ErrorCode.NONE] * partitions
    assert producer.end().error_code == ErrorCode.NONE
    # The answer does not wait for the last one, in which the coordinator notes that all is done.
    assert eventually(lambda: is_idle(running), 30)
    return running.metric("log.sync_round.time.count") - before


def is_idle(running: InProcessBroker) -> bool:
    return running.on_owner(lambda: not running.broker._rounds.is_busy)
