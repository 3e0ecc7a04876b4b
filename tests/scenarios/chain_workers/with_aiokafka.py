"""The worker of exactly_once_chain.py with aiokafka."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

_RECORDS_PER_TRANSACTION = 20


async def main(bootstrap: str, source: str, target: str, partitions: int) -> None:
    while True:  # clients that failed for good are replaced, as an application would
        with contextlib.suppress(KafkaError):
            await run(bootstrap, source, target, partitions)


async def run(bootstrap: str, source: str, target: str, partitions: int) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="chain")
    consumer = AIOKafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id="chain",
        group_instance_id="worker",  # takes its predecessor's place without waiting for its session
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    try:
        await producer.start()  # before any offset is asked for: it ends what the predecessor left open
        await consumer.start()
        while True:
            polled = await consumer.getmany(timeout_ms=200, max_records=_RECORDS_PER_TRANSACTION)
            if not polled:
                continue
            async with producer.transaction():
                for message in (message for part in polled.values() for message in part):
                    number = int(message.value)
                    await producer.send(target, b"%d" % (number * 2), partition=number % partitions)
                offsets = {place: messages[-1].offset + 1 for place, messages in polled.items()}
                await producer.send_offsets_to_transaction(offsets, "chain")
            sys.stdout.write("committed\n")
            sys.stdout.flush()
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
