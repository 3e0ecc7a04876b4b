"""confluent-kafka's Consumer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, TopicPartition

from compat.clients.confluent import consumer, delivered
from compat.consumers.consumer import EARLIEST, LATEST, OutOfRange, Settings
from compat.record import Delivered

_LOGICAL = {EARLIEST: OFFSET_BEGINNING, LATEST: OFFSET_END}


class ConfluentConsumer:
    name = "confluent"

    def __init__(self, bootstrap: str, topic: str, settings: Settings) -> None:
        self._topic = topic
        self._consumer = consumer(
            bootstrap,
            auto_offset_reset=settings.reset,
            isolation_level="read_committed" if settings.read_committed else "read_uncommitted",
            fetch_wait_max_ms=settings.wait_ms,
            fetch_min_bytes=settings.min_bytes,
            fetch_message_max_bytes=settings.partition_bytes,
            # A fetch may be parked for longer than the socket's usual patience with an answer.
            socket_timeout_ms=60_000,
        )

    def assign(self, starts: Mapping[int, int | str]) -> None:
        self._consumer.assign(
            [
                TopicPartition(self._topic, partition, _LOGICAL[start] if isinstance(start, str) else start)
                for partition, start in starts.items()
            ]
        )

    def poll(self, timeout_s: float) -> list[Delivered]:
        records = []
        message = self._consumer.poll(timeout_s)
        while message is not None:
            error = message.error()
            if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise OutOfRange(str(error))
            assert error is None, error
            records.append(delivered(message))
            message = self._consumer.poll(0)
        return records

    def pause(self, partitions: Iterable[int]) -> None:
        self._consumer.pause([TopicPartition(self._topic, partition) for partition in partitions])

    def resume(self, partitions: Iterable[int]) -> None:
        self._consumer.resume([TopicPartition(self._topic, partition) for partition in partitions])

    def watermarks(self, partition: int) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), timeout=10)
        return low, high

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        asked = TopicPartition(self._topic, partition, timestamp_ms)
        [found] = self._consumer.offsets_for_times([asked], timeout=10)
        assert found.error is None, found.error
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        self._consumer.close()
