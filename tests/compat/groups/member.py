"""One consumer of a group in a process of its own, so that it can be killed: `member.py CLIENT STRATEGY …`.

Prints what it is assigned and what it reads, a line of JSON each; commits only what it has printed. SIGTERM
makes it leave the group.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

SESSION_MS = 3_000  # so that a killed one is found out soon
HEARTBEAT_MS = 500

stopping = False


def stop(*_: object) -> None:
    global stopping
    stopping = True


def tell(**what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Told:
    """Tells of assignments when they change."""

    def __init__(self) -> None:
        self._last: list[int] | None = None

    def assigned(self, partitions: list[int]) -> None:
        partitions = sorted(partitions)
        if partitions != self._last:
            self._last = partitions
            tell(assigned=partitions)


def run_confluent(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    if strategy in ("uniform", "range-of-the-broker"):  # the new protocol; the broker tells the timeouts
        protocol: dict[str, Any] = {
            "group.protocol": "consumer",
            "group.remote.assignor": strategy.removesuffix("-of-the-broker"),
        }
    else:
        protocol = {
            "partition.assignment.strategy": strategy,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
    consumer = Consumer(
        {
            **protocol,
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1_000,
            "reconnect.backoff.max.ms": 200,
        }
    )
    consumer.subscribe([topic])
    told = Told()
    while not stopping:
        messages = [each for each in consumer.consume(500, 0.2) if each.error() is None]
        told.assigned([each.partition for each in consumer.assignment()])
        if messages:
            tell(read=[(each.partition(), each.offset(), each.value().decode()) for each in messages])
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                tell(commit_failed=str(error))
    consumer.close()


def run_kafka_python(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import KafkaError

    assignors: dict[str, Any] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        partition_assignment_strategy=[assignors[strategy]],
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,
        reconnect_backoff_max_ms=200,
    )
    told = Told()
    while not stopping:
        try:
            polled = consumer.poll(timeout_ms=200)
        except KafkaError as error:  # it gives up at times when its broker is away
            tell(poll_failed=str(error))
            continue
        told.assigned([each.partition for each in consumer.assignment()])
        records = [each for records in polled.values() for each in records]
        if records:
            tell(read=[(each.partition, each.offset, each.value.decode()) for each in records])
            try:
                consumer.commit()
            except KafkaError as error:
                tell(commit_failed=str(error))
    consumer.close()


def run_aiokafka(bootstrap: str, group: str, topic: str, strategy: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from aiokafka.errors import KafkaError

    assignors: dict[str, Any] = {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
    }

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=(assignors[strategy],),
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            metadata_max_age_ms=1_000,
        )
        await consumer.start()
        told = Told()
        while not stopping:
            polled = await consumer.getmany(timeout_ms=200)
            told.assigned([each.partition for each in consumer.assignment()])
            records = [each for records in polled.values() for each in records]
            if records:
                tell(read=[(each.partition, each.offset, each.value.decode()) for each in records])
                try:
                    await consumer.commit()
                except KafkaError as error:
                    tell(commit_failed=str(error))
        await consumer.stop()

    asyncio.run(run())


CLIENTS = {"confluent": run_confluent, "kafka-python": run_kafka_python, "aiokafka": run_aiokafka}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    client, *arguments = sys.argv[1:]
    CLIENTS[client](*arguments)
