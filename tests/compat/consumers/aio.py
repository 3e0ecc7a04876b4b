"""aiokafka's AIOKafkaConsumer, driven from outside: its loop runs only while a call is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from compat.clients.aio import delivered
from compat.consumers.consumer import EARLIEST, ERROR, LATEST, OutOfRange, Settings
from compat.record import Delivered

_RESETS = {EARLIEST: "earliest", LATEST: "latest", ERROR: "none"}
T = TypeVar("T")


class AioConsumer:
    name = "aiokafka"

    def __init__(self, bootstrap: str, topic: str, settings: Settings) -> None:
        self._topic = topic
        self._loop = asyncio.new_event_loop()
        self._consumer = self._run(self._start(bootstrap, settings))

    async def _start(self, bootstrap: str, settings: Settings) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset=_RESETS[settings.reset],
            isolation_level="read_committed" if settings.read_committed else "read_uncommitted",
            fetch_max_wait_ms=settings.wait_ms,
            fetch_min_bytes=settings.min_bytes,
            max_partition_fetch_bytes=settings.partition_bytes,
        )
        await consumer.start()
        return consumer

    def _run(self, work: Awaitable[T]) -> T:
        return self._loop.run_until_complete(work)

    def assign(self, starts: Mapping[int, int | str]) -> None:
        self._run(self._assign(starts))

    async def _assign(self, starts: Mapping[int, int | str]) -> None:
        places = {self._place(partition): start for partition, start in starts.items()}
        self._consumer.assign(list(places))
        for place, start in places.items():
            if start == EARLIEST:
                await self._consumer.seek_to_beginning(place)
            elif start == LATEST:
                await self._consumer.seek_to_end(place)
            else:
                self._consumer.seek(place, start)

    def poll(self, timeout_s: float) -> list[Delivered]:
        try:
            batches = self._run(self._consumer.getmany(timeout_ms=int(timeout_s * 1000)))
        except OffsetOutOfRangeError as failure:
            raise OutOfRange(str(failure)) from failure
        return [delivered(record) for batch in batches.values() for record in batch]

    def pause(self, partitions: Iterable[int]) -> None:
        self._run(self._inside(self._consumer.pause, partitions))

    def resume(self, partitions: Iterable[int]) -> None:
        self._run(self._inside(self._consumer.resume, partitions))

    async def _inside(self, call: Callable[..., None], partitions: Iterable[int]) -> None:
        """Some plain functions of aiokafka want to be called in its loop."""
        call(*(self._place(partition) for partition in partitions))

    def watermarks(self, partition: int) -> tuple[int, int]:
        place = self._place(partition)
        low = self._run(self._consumer.beginning_offsets([place]))
        high = self._run(self._consumer.end_offsets([place]))
        return low[place], high[place]

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        place = self._place(partition)
        found = self._run(self._consumer.offsets_for_times({place: timestamp_ms}))[place]
        return None if found is None else found.offset

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)
