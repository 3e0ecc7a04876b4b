"""kafka-python's KafkaConsumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compat.clients.kafka_package import KafkaConsumer, TopicPartition, errors
from compat.clients.kafka_python import delivered
from compat.consumers.consumer import EARLIEST, ERROR, LATEST, OutOfRange, Settings
from compat.record import Delivered

_RESETS = {EARLIEST: "earliest", LATEST: "latest", ERROR: "none"}


class KafkaPythonConsumer:
    name = "kafka-python"

    def __init__(self, bootstrap: str, topic: str, settings: Settings) -> None:
        self._topic = topic
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            auto_offset_reset=_RESETS[settings.reset],
            isolation_level="read_committed" if settings.read_committed else "read_uncommitted",
            fetch_max_wait_ms=settings.wait_ms,
            fetch_min_bytes=settings.min_bytes,
            max_partition_fetch_bytes=settings.partition_bytes,
        )

    def assign(self, starts: Mapping[int, int | str]) -> None:
        places = {self._place(partition): start for partition, start in starts.items()}
        self._consumer.assign(list(places))
        for place, start in places.items():
            if start == EARLIEST:
                self._consumer.seek_to_beginning(place)
            elif start == LATEST:
                self._consumer.seek_to_end(place)
            else:
                self._consumer.seek(place, start)

    def poll(self, timeout_s: float) -> list[Delivered]:
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except errors.OffsetOutOfRangeError as failure:
            raise OutOfRange(str(failure)) from failure
        return [delivered(record) for batch in batches.values() for record in batch]

    def pause(self, partitions: Iterable[int]) -> None:
        self._consumer.pause(*(self._place(partition) for partition in partitions))

    def resume(self, partitions: Iterable[int]) -> None:
        self._consumer.resume(*(self._place(partition) for partition in partitions))

    def watermarks(self, partition: int) -> tuple[int, int]:
        place = self._place(partition)
        return self._consumer.beginning_offsets([place])[place], self._consumer.end_offsets([place])[place]

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        place = self._place(partition)
        found = self._consumer.offsets_for_times({place: timestamp_ms})[place]
        return None if found is None else found.offset

    def close(self) -> None:
        self._consumer.close()

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)
