"""A consumer with a `client.rack` reads from the follower in its rack, where Kafka offers that (KIP-392)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from interop.apache_kafka import apache_kafka_in_two_racks
from ottla.client import Admin, Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

PLACE = TopicPartition("topic", 0)
EXPECTED = [b"%d" % number for number in range(2_000)]


def read_all(consumer: Consumer) -> list[bytes]:
    consumer.assign({PLACE: "start"})
    found: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(found) < len(EXPECTED) and time.monotonic() < deadline:
        found += [record.value for record in consumer.poll(1)]
    return found


def test_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    with apache_kafka_in_two_racks(tmp_path) as bootstrap:
        with Admin(bootstrap) as admin:
            admin.create_topic(PLACE.topic, assignment={0: [1, 2]})
        with Producer(bootstrap) as producer:
            for value in EXPECTED:
                producer.send(PLACE.topic, value)
        for rack, replica in (("near", 2), ("elsewhere", None)):
            with Consumer(bootstrap, client_rack=rack) as consumer:
                assert read_all(consumer) == EXPECTED
                assert consumer._calls._fetcher.readers[PLACE].replica == replica
