"""An order fans out to coupons, points and SMS; a spike is absorbed, and drained by adding consumers.

    python -m examples.orders.fan_out

Orders are written with their events into one SQLite transaction (an outbox). Three groups read them, each at
its own pace: coupons and points count each order once, whatever comes twice (a ledger in their own database);
the SMS gateway bears 100 a second for each consumer, and what it refuses goes to a dead-letter topic.
"""

from __future__ import annotations

import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ottla.client import Admin, Consumer, Producer, Topic
from ottla.client.patterns import DeadLetters, Ledger, Outbox, OutboxRelay, RateLimit, backlog
from ottla.client.typed import json
from ottla.testing import BrokerProcess

ORDERS_COUNT = 1_000
SMS_PER_SECOND = 100
PARTITIONS = 4
QUICK = {"group.initial.rebalance.delay.ms": "0"}


@dataclass
class Order:
    id: int
    customer: str
    cents: int


ORDERS = Topic("orders", key=str, value=json(Order))


def place_orders(database: Path, bootstrap: str) -> None:
    """The shop: an order and its event are one transaction; the relay delivers each event once."""
    outbox = Outbox()
    with closing(sqlite3.connect(database)) as connection:
        outbox.create(connection)
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER)")
        for number in range(ORDERS_COUNT):
            order = Order(number, f"customer-{number % 50}", 100 + number)
            connection.execute("INSERT INTO orders VALUES (?, ?, ?)", (order.id, order.customer, order.cents))
            key = ORDERS.key.serialize(ORDERS, order.customer)
            outbox.add(connection, ORDERS, ORDERS.value.serialize(ORDERS, order), key)
        connection.commit()
    OutboxRelay(outbox, lambda: sqlite3.connect(database), bootstrap).drain()


def count_orders(group: str, database: Path, bootstrap: str, stop: threading.Event) -> None:
    """Coupons and points: the work, and that it is done, are one transaction."""
    ledger = Ledger()
    with (
        closing(sqlite3.connect(database)) as connection,
        Consumer(
            bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        ) as consumer,
    ):
        ledger.create(connection)
        connection.execute("CREATE TABLE IF NOT EXISTS totals (cents INTEGER)")
        consumer.subscribe([ORDERS])
        while not stop.is_set():
            for record in consumer.poll(0.2):
                if ledger.first_time(connection, group, str(record.value.id)):
                    connection.execute("INSERT INTO totals VALUES (?)", (record.value.cents,))
            connection.commit()
            consumer.commit()


def send_sms(bootstrap: str, stop: threading.Event, sent: list[bytes]) -> None:
    """Reads the plain topic, so that a dead letter has the original bytes."""
    limit = RateLimit(SMS_PER_SECOND)
    with (
        Producer(bootstrap) as producer,
        Consumer(
            bootstrap,
            group_id="sms",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
            max_poll_records=25,
        ) as consumer,
    ):
        dead = DeadLetters(producer)
        consumer.subscribe([str(ORDERS)])
        while not stop.is_set():
            for record in consumer.poll(0.2):
                limit.wait()
                try:
                    if record.key == b"customer-13":
                        raise ValueError("no such number")
                    sent.append(record.value)
                except ValueError as error:
                    dead.send(record, error)
            consumer.commit()


def main() -> None:
    stop, sent = threading.Event(), []
    threads: list[threading.Thread] = []

    def start(target: object, *arguments: object) -> None:
        threads.append(threading.Thread(target=target, args=arguments))  # type: ignore[arg-type]
        threads[-1].start()

    with tempfile.TemporaryDirectory() as name, BrokerProcess(settings=QUICK) as broker:
        folder, bootstrap = Path(name), broker.bootstrap
        with Admin(bootstrap) as admin:
            admin.create_topic(ORDERS, partitions=PARTITIONS)
        place_orders(folder / "shop.db", bootstrap)
        print(f"{ORDERS_COUNT} orders at once")
        for group in ("coupons", "points"):
            start(count_orders, group, folder / f"{group}.db", bootstrap, stop)
        start(send_sms, bootstrap, stop, sent)
        try:
            time.sleep(2)
            show(bootstrap)
            print("three more consumers for the SMS")
            for _ in range(PARTITIONS - 1):
                start(send_sms, bootstrap, stop, sent)
            while any(backlog(bootstrap, group, ORDERS).records for group in ("coupons", "points", "sms")):
                time.sleep(0.5)
            show(bootstrap)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        for group in ("coupons", "points"):
            with closing(sqlite3.connect(folder / f"{group}.db")) as connection:
                count, cents = connection.execute("SELECT COUNT(*), SUM(cents) FROM totals").fetchone()
                print(f"{group} counted {count} orders, {cents} cents")
        with Admin(bootstrap) as admin:
            refused = sum(admin.latest_offsets(admin.partitions_of("orders.dead")).values())
        print(f"sms sent {len(set(sent))}, refused {refused} (in orders.dead)")


def show(bootstrap: str) -> None:
    for group in ("coupons", "points", "sms"):
        behind = backlog(bootstrap, group, ORDERS)
        print(f"  {group:<8} is {behind.records:>5} records and {behind.seconds:4.1f} s behind")


if __name__ == "__main__":
    main()
