"""One of the workers of exactly_once_pair.py, with aiokafka, which speaks the classic protocol only.

It cannot tell the group who commits (KIP-447), so each input partition has a producer of its own: whoever is
given a partition begins with its transactional id, and fences the one who had it before.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

from aiokafka import (
    AIOKafkaConsumer,
    AIOKafkaProducer,
    ConsumerRebalanceListener,
    ConsumerRecord,
    TopicPartition,
)
from aiokafka.errors import KafkaError

_RECORDS_PER_TRANSACTION = 20


class Producers(ConsumerRebalanceListener):
    """One for each partition that is ours."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.are_there = False
        self.moves = 0  # how often partitions have come or gone
        self.by_place: dict[TopicPartition, AIOKafkaProducer] = {}

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.are_there = False
        self.moves += 1
        for place in list(self.by_place):
            with contextlib.suppress(KafkaError):
                await self.by_place.pop(place).stop()

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        """Ends what the one before has left open: what is committed now stays."""
        for place in assigned:
            self.by_place[place] = producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                transactional_id=f"chain-of-{place.partition}",
                transaction_timeout_ms=10_000,
            )
            await producer.start()
        self.are_there = True

    async def stop(self) -> None:
        await self.on_partitions_revoked([])


async def main(bootstrap: str, source: str, target: str, partitions: int) -> None:
    while True:  # clients that failed for good are replaced, as an application would
        with contextlib.suppress(KafkaError):
            await run(bootstrap, source, target, partitions)


async def run(bootstrap: str, source: str, target: str, partitions: int) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id="chain",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=3_000,
        heartbeat_interval_ms=500,
        max_poll_interval_ms=20_000,  # one that hangs does not hold up the other
    )
    producers = Producers(bootstrap)
    try:
        consumer.subscribe([source], listener=producers)
        await consumer.start()
        moves = 0
        while True:
            polled = await consumer.getmany(timeout_ms=200, max_records=_RECORDS_PER_TRANSACTION)
            if not producers.are_there:
                continue
            if producers.moves != moves:  # some of them may be another's, or read again, by now
                moves = producers.moves
                for place in consumer.assignment():
                    consumer.seek(place, await consumer.committed(place) or 0)
                continue
            for place, messages in polled.items():
                if producers.moves != moves:
                    break
                await transform(producers.by_place[place], place, messages, target, partitions)
    finally:
        await consumer.stop()
        await producers.stop()


async def transform(
    producer: AIOKafkaProducer,
    place: TopicPartition,
    messages: list[ConsumerRecord],
    target: str,
    partitions: int,
) -> None:
    async with producer.transaction():
        for message in messages:
            number = int(message.value)
            await producer.send(target, b"%d" % (number * 2), partition=number % partitions)
        await producer.send_offsets_to_transaction({place: messages[-1].offset + 1}, "chain")
    sys.stdout.write("committed\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
