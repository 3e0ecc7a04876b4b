"""Keys land where Java's and librdkafka's murmur2 put them; the other strategies spread as they say."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from confluent_kafka import Producer as ConfluentProducer

from client.conftest import NewTopicName
from ottla.client.cluster_view import Partition, Topic
from ottla.client.partitioners import HeldRandom, KeyElseSticky, Random, RoundRobin, Sticky, partition_of_key
from ottla.client.producer import Producer
from ottla.model.topics import NO_TOPIC_ID
from ottla.records import kernel, kernel_choice

# From the tests of Kafka's own Utils.murmur2, as signed 32 bits.
JAVA_HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def topic_of(count: int, leaderless: frozenset[int] = frozenset()) -> Topic:
    partitions = (
        Partition(index, None if index in leaderless else 1, 0, (1,), (1,)) for index in range(count)
    )
    return Topic("t", NO_TOPIC_ID, False, tuple(partitions))


@pytest.mark.parametrize(("key", "hashed"), JAVA_HASHES.items())
def test_murmur2_is_javas(key: bytes, hashed: int) -> None:
    assert kernel_choice.record_kernel.murmur2(key) == hashed & 0xFFFF_FFFF
    assert partition_of_key(key, 7) == (hashed & 0x7FFF_FFFF) % 7


def test_compiled_and_plain_murmur2_agree() -> None:
    chance = random.Random(1)
    for size in range(70):
        key = chance.randbytes(size)
        assert kernel_choice.record_kernel.murmur2(key) == kernel.murmur2(key)


def test_keys_land_where_librdkafka_puts_them(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(7)
    chance = random.Random(2)
    keys = [b"", *(chance.randbytes(chance.randrange(1, 40)) for _ in range(200))]
    theirs: dict[bytes, int] = {}
    confluent = ConfluentProducer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})

    def delivered(error: object, message: object) -> None:
        assert error is None
        theirs[message.key() or b""] = message.partition()  # type: ignore[attr-defined]

    for key in keys:
        confluent.produce(name, b"", key, on_delivery=delivered)
    assert confluent.flush(30) == 0
    with Producer(bootstrap) as producer:
        futures = {key: producer.send(name, b"", key) for key in keys}
        ours = {key: future.result(30).partition for key, future in futures.items()}
    del theirs[b""]  # librdkafka takes an empty key for none
    del ours[b""]
    assert ours == theirs


def test_sticky_keeps_a_partition_for_a_batch_and_avoids_those_without_a_leader() -> None:
    choice = Sticky(random.Random(3))
    topic = topic_of(4, leaderless=frozenset({1, 2}))
    seen = set()
    for _ in range(50):
        first = choice.choose(b"ignored", topic, 0)
        assert {choice.choose(None, topic, 0) for _ in range(10)} == {first}
        seen.add(first)
        choice.batch_ended("t")
    assert seen == {0, 3}


def test_a_key_decides_and_the_rest_is_sticky() -> None:
    choice = KeyElseSticky(random.Random(4))
    topic = topic_of(5)
    assert choice.choose(b"abc", topic, 0) == partition_of_key(b"abc", 5)
    assert len({choice.choose(None, topic, 0) for _ in range(20)}) == 1


def test_round_robin_takes_every_partition_in_turn() -> None:
    choice = RoundRobin()
    assert [choice.choose(b"same", topic_of(3), 0) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_random_spreads_evenly() -> None:
    choice = Random(random.Random(5))
    counts = Counter(choice.choose(b"same", topic_of(4), 0) for _ in range(4000))
    assert min(counts.values()) > 800
    assert len(counts) == 4


def test_held_random_changes_only_when_its_time_is_over() -> None:
    choice = HeldRandom(1000, random.Random(6))
    topic = topic_of(100)
    first = choice.choose(None, topic, 0)
    assert choice.choose(None, topic, 999) == first
    assert len({choice.choose(None, topic, 1000 * turn) for turn in range(1, 20)}) > 5
