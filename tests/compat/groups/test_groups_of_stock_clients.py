"""Groups of stock consumers that join, leave and are killed under load, and a broker that is killed too.

Whatever happens: every acknowledged record is read, and committed offsets are honoured by who comes after.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat.broker import unique_name
from compat.groups.crew import WITHIN_SECONDS, Crew
from compat.groups.story import PARTITIONS, SETTINGS, Load, committed, ends, members_come_and_go, new_topic
from compat.waiting import eventually
from ottla.testing import BrokerProcess

QUICK = [
    ("confluent", "uniform"),
    ("confluent", "cooperative-sticky"),
    ("kafka-python", "sticky"),
    ("aiokafka", "roundrobin"),
]
OTHERS = [
    ("confluent", "range-of-the-broker"),
    ("confluent", "range"),
    ("confluent", "roundrobin"),
    ("kafka-python", "range"),
    ("kafka-python", "roundrobin"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "sticky"),
]
CASES = [
    *(pytest.param(*case, id="-".join(case)) for case in QUICK),
    *(pytest.param(*case, id="-".join(case), marks=pytest.mark.slow) for case in OTHERS),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings=SETTINGS) as process:
        yield process


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("client", "strategy"), CASES)
def test_members_come_and_go_under_load(broker: BrokerProcess, client: str, strategy: str) -> None:
    members_come_and_go(broker, client, strategy)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("client", "strategy"),
    [("confluent", "range"), ("confluent", "uniform"), ("kafka-python", "range"), ("aiokafka", "range")],
)
def test_a_group_goes_on_after_its_broker_was_killed(client: str, strategy: str) -> None:
    with BrokerProcess(settings=SETTINGS) as broker:
        topic, group = new_topic(broker, PARTITIONS), unique_name("group")
        load = Load(broker, topic)
        try:
            with Crew(client, strategy, broker.bootstrap, group, topic) as crew:
                crew.add(2)
                crew.wait_for_shares(3, 3)
                crew.wait_for(set(load.acknowledged))
                before = committed(broker, group, topic)
                broker.kill()
                broker.start()
                after = committed(broker, group, topic)
                assert all(now >= then for now, then in zip(after, before, strict=True))
                crew.wait_for(load.stop())
                crew.wait_for_shares(3, 3)
                for member in crew.alive:
                    member.leave()
        finally:
            load.stop()
        assert committed(broker, group, topic) == ends(broker, topic)


@pytest.mark.timeout(300)
def test_who_comes_later_starts_where_the_last_one_stopped(broker: BrokerProcess) -> None:
    """Each kind of client takes over from the one before."""
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    with Crew("confluent", "range", broker.bootstrap, group, topic) as crew:
        for number, client in enumerate(("confluent", "kafka-python", "aiokafka", "confluent")):
            values = {f"{number}-{each}" for each in range(60)}
            for each, value in enumerate(values):
                producer.produce(topic, value, partition=each % PARTITIONS)
            assert producer.flush(60) == 0
            (member,) = crew.add(1, client)
            crew.wait_for(values)
            assert {value for _, _, value in member.read} == values, "nothing twice, nothing else"
            member.leave()


@pytest.mark.timeout(300)
def test_a_pattern_follows_the_topics_that_come(broker: BrokerProcess) -> None:
    """Of the new protocol: the broker matches it."""
    prefix = unique_name("prefix")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": unique_name("group"),
            "group.protocol": "consumer",
            "topic.metadata.refresh.interval.ms": 1_000,
        }
    )
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    consumer.subscribe([f"^{prefix}-.*"])

    def reads(*topics: str) -> bool:
        consumer.poll(0.2)
        return {each.topic for each in consumer.assignment()} == set(topics)

    try:
        topics: list[str] = []
        for number in range(2):
            topics.append(f"{prefix}-{number}")
            admin.create_topics([NewTopic(topics[-1], 1, 1)])[topics[-1]].result(30)
            assert eventually(lambda: reads(*topics), WITHIN_SECONDS), topics
        admin.delete_topics(topics[:1])[topics[0]].result(30)
        assert eventually(lambda: reads(topics[1]), WITHIN_SECONDS)
    finally:
        consumer.close()


@pytest.mark.timeout(300)
def test_a_static_member_of_the_new_protocol_comes_back_to_its_partitions() -> None:
    """Its session is long, so that nobody gets them meanwhile."""
    settings = {"group.consumer.heartbeat.interval.ms": "300"}
    with BrokerProcess(settings=settings) as broker:
        topic, group = new_topic(broker, 4), unique_name("group")

        def new(instance_id: str) -> Consumer:
            consumer = Consumer(
                {
                    "bootstrap.servers": broker.bootstrap,
                    "group.id": group,
                    "group.instance.id": instance_id,
                    "group.protocol": "consumer",
                }
            )
            consumer.subscribe([topic])
            return consumer

        def shares(*consumers: Consumer) -> list[list[int]]:
            for consumer in consumers:
                consumer.poll(0.1)
            return [sorted(each.partition for each in consumer.assignment()) for consumer in consumers]

        first, second = new("one"), new("two")
        assert eventually(lambda: list(map(len, shares(first, second))) == [2, 2], WITHIN_SECONDS)
        before = shares(first, second)
        first.close()
        again = new("one")
        assert eventually(lambda: shares(again, second) == before, WITHIN_SECONDS)
        again.close()
        second.close()


@pytest.mark.timeout(300)
def test_clients_of_different_makers_share_a_group(broker: BrokerProcess) -> None:
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load = Load(broker, topic)
    try:
        with Crew("confluent", "range", broker.bootstrap, group, topic) as crew:
            for client in ("confluent", "kafka-python", "aiokafka"):
                crew.add(1, client)
            crew.wait_for_shares(2, 2, 2)
            crew.alive[0].kill()
            crew.wait_for_shares(3, 3)
            crew.wait_for(load.stop())
    finally:
        load.stop()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("consumers", "shares"), [(3, (1, 1, 1)), (2, (2, 1)), (4, (1, 1, 1, 0))], ids=["3", "2", "4"]
)
def test_three_partitions_are_shared(broker: BrokerProcess, consumers: int, shares: tuple[int, ...]) -> None:
    topic, group = new_topic(broker, 3), unique_name("group")
    with Crew("confluent", "range", broker.bootstrap, group, topic) as crew:
        crew.add(consumers)
        crew.wait_for_shares(*shares)
