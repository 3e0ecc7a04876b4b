"""`make demo`: a broker starts, stock Kafka clients produce and consume, the terminal shows what happened.

Nothing here is Ottla's own client: the producer is confluent-kafka (librdkafka), the reader kafka-python.
"""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import BrokerProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition

HOME = Path(".demo")
TOPIC = "orders"
PARTITIONS = 3
RECORDS = 100_000
INVOICES = "invoices"
ORDERS_PER_TRANSACTION = 10_000
KILLED_DURING_TRANSACTION = 4  # the broker, that is
QUIET = {"log_level": 2}  # no word of librdkafka about the broker that is killed
CUSTOMERS = ("Ada", "Grace", "Edsger", "Barbara", "Donald")


def main() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    began = time.perf_counter()
    with BrokerProcess(HOME) as broker:
        step(f"broker is up at {broker.bootstrap} after {time.perf_counter() - began:.2f} s, data in {HOME}/")
        create_topic(broker.bootstrap)
        produce(broker.bootstrap)
        consume(broker.bootstrap)
        step("kill -9, and a new start on the same data")
        broker.kill()
        began = time.perf_counter()
        broker.start()
        step(f"recovered after {time.perf_counter() - began:.2f} s; every acknowledged record is there:")
        consume(broker.bootstrap)
        bill(broker)
        check_invoices(broker.bootstrap)
    step("stopped cleanly. Run your own with: .venv/bin/ottla up")


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=PARTITIONS) for name in (TOPIC, INVOICES)]
    for created in admin.create_topics(topics).values():
        created.result(10)
    step(f"topics {TOPIC!r} and {INVOICES!r} with {PARTITIONS} partitions each")


def produce(bootstrap: str) -> None:
    """acks=all and idempotent, zstd: each record is on disk before it counts as delivered."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": "zstd",
            "linger.ms": 5,
            "queue.buffering.max.messages": RECORDS,
        }
    )
    failed: list[str] = []
    began = time.perf_counter()
    for number in range(RECORDS):
        customer = CUSTOMERS[number % len(CUSTOMERS)]
        order = json.dumps({"order": number, "customer": customer, "cents": number * 37 % 10_000})
        producer.produce(
            TOPIC, order, customer, on_delivery=lambda error, _: failed.append(str(error)) if error else None
        )
        if number % 1_000 == 0:
            producer.poll(0)
    producer.flush(60)
    seconds = time.perf_counter() - began
    assert not failed, failed[0]
    rate = RECORDS / seconds
    step(f"confluent-kafka produced {RECORDS:,} orders, acks=all, synced to disk: {rate:,.0f} records/s")


def consume(bootstrap: str) -> None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    per_partition: Counter[int] = Counter()
    cents: Counter[str] = Counter()
    orders: Counter[str] = Counter()
    while sum(per_partition.values()) < RECORDS:
        for partition, records in consumer.poll(1_000, max_records=10_000).items():
            per_partition[partition.partition] += len(records)
            for record in records:
                order = json.loads(record.value)
                orders[order["customer"]] += 1
                cents[order["customer"]] += order["cents"]
    consumer.close()
    placed = ", ".join(f"{index}: {per_partition[index]:,}" for index in range(PARTITIONS))
    step(f"kafka-python consumed {sum(per_partition.values()):,} orders (partition {placed})")
    print(f"\n    {'customer':<10} {'orders':>8} {'total':>14}")
    for customer in CUSTOMERS:
        print(f"    {customer:<10} {orders[customer]:>8,} {cents[customer] / 100:>14,.2f}")
    print()


def bill(broker: BrokerProcess) -> None:
    """A group reads orders and writes invoices, exactly once: both are committed in one transaction."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "billing",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **QUIET,
        }
    )
    consumer.subscribe([TOPIC])
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": "billing",
            "linger.ms": 5,
            **QUIET,
            "metadata.recovery.strategy": "none",  # librdkafka 2.16 can hang when its only broker was away
        }
    )
    producer.init_transactions(30)
    billed = transactions = 0
    while billed < RECORDS:
        orders = [message for message in consumer.consume(ORDERS_PER_TRANSACTION, 1) if not message.error()]
        if not orders:
            continue
        producer.begin_transaction()
        for message in orders:
            order = json.loads(message.value())
            producer.produce(INVOICES, f"{order['order']}: {order['cents'] / 100:.2f}", message.key())
        if transactions == KILLED_DURING_TRANSACTION:
            broker.kill()
            broker.start()
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        producer.commit_transaction(30)
        billed += len(orders)
        transactions += 1
    consumer.close()
    step(
        f"group 'billing' wrote {billed:,} invoices in {transactions} transactions; a kill -9 hit one of them"
    )


def check_invoices(bootstrap: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "check", "isolation.level": "read_committed"}
    )
    consumer.assign([ConfluentPartition(INVOICES, index, 0) for index in range(PARTITIONS)])
    seen: Counter[bytes] = Counter()
    while sum(seen.values()) < RECORDS:
        seen.update(message.value() for message in consumer.consume(10_000, 1) if not message.error())
    consumer.close()
    assert set(seen.values()) == {1}, "an invoice was written twice"
    step(f"read_committed finds {len(seen):,} invoices, each exactly once")


def step(text: str) -> None:
    print(f"-> {text}", flush=True)


if __name__ == "__main__":
    main()
