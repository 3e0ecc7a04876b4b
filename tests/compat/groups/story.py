"""What happens to a group under load, whatever its members are written in."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import count

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.broker import unique_name
from compat.groups.crew import PYTHON_CLIENTS, Crew
from ottla.testing import BrokerProcess

PARTITIONS = 6
SETTINGS = {
    "group.initial.rebalance.delay.ms": "300",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.heartbeat.interval.ms": "300",
}


def new_topic(broker: BrokerProcess, partitions: int) -> str:
    name = unique_name("topic")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(30)
    return name


class Load:
    """A producer that writes numbered records until it is told to stop."""

    def __init__(self, broker: BrokerProcess, topic: str) -> None:
        self.acknowledged: set[str] = set()
        self._topic = topic
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "message.timeout.ms": 60_000,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in count():
            if self._stopping.wait(0.005):
                break
            value = str(number)
            self._producer.produce(
                self._topic, value, partition=number % PARTITIONS, on_delivery=self._delivered
            )
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            self.acknowledged.add(value.decode())

    def stop(self) -> set[str]:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(60) == 0
        return self.acknowledged


def committed(broker: BrokerProcess, group: str, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    offsets = [each.offset for each in consumer.committed(asked, timeout=30)]
    consumer.close()
    return offsets


def ends(broker: BrokerProcess, topic: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "nobody"})
    found = [
        consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
        for partition in range(PARTITIONS)
    ]
    consumer.close()
    return found


class Watch:
    """Looks at a group all the time: no partition may have two owners, and which protocols it had."""

    def __init__(self, broker: BrokerProcess, group: str) -> None:
        self.types: list[str] = []  # in the order of their coming
        self.conflicts: list[str] = []
        self._group = group
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(0.05):
            try:
                group = self._admin.describe_consumer_groups([self._group])[self._group].result(30)
            except KafkaException:
                continue  # it has none yet, or becomes another just now
            owners: dict[int, str] = {}
            for member in group.members:
                for each in member.assignment.topic_partitions if member.assignment else ():
                    if each.partition in owners:
                        self.conflicts.append(f"{each}: {owners[each.partition]} and {member.member_id}")
                    owners[each.partition] = member.member_id
            if group.members and group.type.name not in self.types[-1:]:
                self.types.append(group.type.name)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


def group_changes_its_protocol(
    broker: BrokerProcess,
    old: tuple[str, str],
    new: tuple[str, str],
    commands: Mapping[str, list[str]] = PYTHON_CLIENTS,
) -> None:
    """All members are replaced one by one, there and back; `old` and `new` are client and strategy."""
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load, watch = Load(broker, topic), Watch(broker, group)
    try:
        with Crew(*old, broker.bootstrap, group, topic, commands) as crew:
            crew.add(2)
            crew.wait_for_shares(3, 3)
            for client, strategy in (new, old):
                for _ in range(2):
                    (joined,) = crew.add(1, client, strategy)
                    crew.wait_for_shares(2, 2, 2)
                    crew.alive[0].leave()
                    crew.wait_for_shares(3, 3)
                    assert joined.assigned
            crew.wait_for(load.stop())
            for member in crew.alive:
                member.leave()
    finally:
        load.stop()
        watch.stop()
    assert watch.conflicts == []
    assert watch.types == ["CLASSIC", "CONSUMER", "CLASSIC"]
    assert committed(broker, group, topic) == ends(broker, topic)


def members_come_and_go(
    broker: BrokerProcess, client: str, strategy: str, commands: Mapping[str, list[str]] = PYTHON_CLIENTS
) -> None:
    """From one to five; one is killed, one leaves; nothing that was acknowledged is missed."""
    topic, group = new_topic(broker, PARTITIONS), unique_name("group")
    load = Load(broker, topic)
    try:
        with Crew(client, strategy, broker.bootstrap, group, topic, commands) as crew:
            crew.add()
            crew.wait_for_shares(6)
            crew.add(2)
            crew.wait_for_shares(2, 2, 2)
            crew.alive[1].kill()
            crew.wait_for_shares(3, 3)
            crew.add(3)
            crew.wait_for_shares(2, 1, 1, 1, 1)
            crew.alive[0].leave()
            crew.wait_for_shares(2, 2, 1, 1)
            crew.wait_for(load.stop())
            for member in crew.alive:
                member.leave()
    finally:
        load.stop()
    assert committed(broker, group, topic) == ends(broker, topic)
