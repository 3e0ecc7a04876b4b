"""Delayed delivery, by levels: a topic for each delay, whose records all wait equally long.

    delays = Delays("orders.delay", [1, 60, 3600])
    delays.send(producer, "reminders", b"…", seconds=60)
    delays.run(bootstrap, stop)                        # somewhere: moves what is due

Records of one level are due in the order in which they came, so that waiting for the first is waiting for
all: nothing is sorted, nothing is kept in memory, and what waits is as durable as any record. The price: only
the delays that were named, rounded up. Never early by the sender's clock; late by up to a poll, or as long as
no mover runs. Moving is a transaction with the mover's offsets: exactly once for who reads committed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ottla.client.admin import Admin
from ottla.client.consumer import Consumer
from ottla.client.delivery import SendFuture
from ottla.client.errors import TopicExists
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition

TARGET = "delay.topic"
DUE = "delay.due-ms"
_POLL_SECONDS = 0.2


class Delays:
    def __init__(self, prefix: str, seconds: Iterable[float], clock: Callable[[], float] = time.time) -> None:
        self._levels = sorted(seconds)
        if not self._levels or self._levels[0] <= 0:
            raise ValueError("give the delays that are wanted, in seconds, each above 0")
        self._prefix = prefix
        self._clock = clock

    def topic_of(self, seconds: float) -> str:
        """Of the smallest level that is long enough. Raises ValueError."""
        for level in self._levels:
            if level >= seconds:
                return f"{self._prefix}.{level:g}s"
        raise ValueError(f"no level holds {seconds} s; the longest is {self._levels[-1]} s")

    @property
    def topics(self) -> list[str]:
        return [self.topic_of(level) for level in self._levels]

    def create(self, bootstrap: str, **settings: Any) -> None:
        """The topics of all levels, where they are not there."""
        with Admin(bootstrap, **settings) as admin:
            for topic in self.topics:
                with contextlib.suppress(TopicExists):
                    admin.create_topic(topic, partitions=1)

    def send(
        self,
        producer: Producer,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        seconds: float,
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> SendFuture:
        """To `topic`, when `seconds` (rounded up to a level) are over."""
        through = self.topic_of(seconds)
        level = next(each for each in self._levels if each >= seconds)
        due_ms = int((self._clock() + level) * 1000)
        marks = ((TARGET, topic.encode()), (DUE, str(due_ms).encode()))
        return producer.send(through, value, key, headers=(*headers, *marks))

    # -- moving --------------------------------------------------------------------------------------------

    def run(self, bootstrap: str, stop: threading.Event, group: str = "delays", **settings: Any) -> None:
        """Moves what is due until `stop` is set. Several may run: levels are shared among them.

        Settings are those that every client takes (`security.protocol` …).
        """
        transactional_id = f"{self._prefix}-{group}-{time.time_ns():x}"
        with (
            Consumer(
                bootstrap,
                group_id=f"{self._prefix}.{group}",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                **settings,
            ) as consumer,
            Producer(bootstrap, transactional_id=transactional_id, **settings) as producer,
        ):
            producer.init_transactions()
            consumer.subscribe(self.topics)
            while not stop.is_set():
                self._move(consumer, producer, consumer.poll(_POLL_SECONDS))

    def _move(self, consumer: Consumer, producer: Producer, records: list[ConsumedRecord]) -> None:
        """What is due; a level whose next record is not goes back to that one and waits."""
        now_ms = self._clock() * 1000
        waiting: dict[TopicPartition, int] = {}
        due: list[ConsumedRecord] = []
        for record in records:
            place = TopicPartition(record.topic, record.partition)
            if place in waiting:
                continue
            if _due_ms(record) > now_ms:
                waiting[place] = record.offset
            else:
                due.append(record)
        for place, offset in waiting.items():
            consumer.seek(place, offset)
        if not due:
            if waiting:
                time.sleep(_POLL_SECONDS)
            return
        with producer.transaction():
            for record in due:
                headers = [each for each in record.headers if each[0] not in (TARGET, DUE)]
                target = dict(record.headers)[TARGET] or b""
                producer.send(target.decode(), record.value, record.key, headers=headers)
            offsets = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in due}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())


def _due_ms(record: ConsumedRecord) -> int:
    return int(dict(record.headers).get(DUE) or 0)
