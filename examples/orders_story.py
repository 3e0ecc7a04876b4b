"""`make demo`: a broker, orders, a pipeline on Spark, two kills, and the proof that each order counted once.

Everything runs in `.demo/`: the broker with its coordination service, a copy of `orders_pipeline/`; a picture
stays there. The orders come from Ottla's own client, the totals are checked against a plain sum.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from examples.telling import HOME, running, since, stage, step, type_in, verdict, wait

from ottla.client import Admin, Producer, read
from ottla.testing import BrokerProcess

PICTURE = HOME / "orders.png"
PARTITIONS = 3
ORDERS = 40_000
FREE_ORDERS = 7  # they cost nothing, and must end among the dead letters
CITIES = {
    "Ada": "London",
    "Grace": "New York",
    "Edsger": "Rotterdam",
    "Barbara": "Boston",
    "Donald": "Stanford",
}
OPENING = datetime(2026, 11, 1, 10, tzinfo=UTC)
MINUTES = 8

Totals = Counter[tuple[str, str]]


def main() -> None:
    began = time.monotonic()
    with stage("orders_pipeline") as (broker, folder):
        step(f"a broker with its coordination service is up at {broker.bootstrap} ({since(began)})")
        expected = produce(broker.bootstrap)
        step("the pipeline: orders → valid → totals by minute and city")
        type_in("pipeline", "graph", folder)
        run_through_two_kills(broker, folder)
        finish(broker.bootstrap, folder)
        draw(check(broker.bootstrap, folder, expected))
    step(f"done in {since(began)}. Where to look next:")
    print(f"   {PICTURE!s:<35} the orders by minute")
    print("   .venv/bin/ottla up -d               a broker of your own, for any Kafka client")
    print("   .venv/bin/ottla pipeline new shop   a pipeline of your own")
    print("   docs/examples/, docs/pipelines.md   more of them")


# -- orders ------------------------------------------------------------------------------------------------


def produce(bootstrap: str) -> Totals:
    """Orders of some minutes; returns what the totals must be."""
    with Admin(bootstrap) as admin:
        admin.create_topic("orders", partitions=PARTITIONS)
    expected: Totals = Counter()
    began = time.monotonic()
    with Producer(bootstrap, linger_ms=5, compression_type="lz4") as producer:
        for number in range(ORDERS):
            at = OPENING + timedelta(seconds=number * MINUTES * 60 / ORDERS)
            customer = list(CITIES)[number % len(CITIES)]
            cents = (
                0
                if number % (ORDERS // FREE_ORDERS) == ORDERS // FREE_ORDERS - 1
                else 100 + number * 37 % 900
            )
            send(producer, number, customer, cents, at)
            if cents:
                expected[f"{at:%H:%M}", CITIES[customer]] += cents
    step(f"{ORDERS:,} orders sent with acks=all, each on the disk before it counts ({since(began)})")
    return expected


def send(producer: Producer, number: int, customer: str, cents: int, at: datetime) -> None:
    order = {"id": number, "customer": customer, "cents": cents, "at": at.isoformat()}
    producer.send("orders", json.dumps(order).encode(), customer.encode())


# -- the pipeline ------------------------------------------------------------------------------------------


def run_through_two_kills(broker: BrokerProcess, folder: Path) -> None:
    step("`ottla pipeline run` starts Spark, and works off its lag:")
    output = folder / "run.out"
    with running(folder, output) as process:
        wait(lambda: batches(folder) >= 2, "two batches", process, output)
        show_lag()
        step("kill -9 of the broker in the middle of a batch")
        broker.kill()
        time.sleep(1)
        began = time.monotonic()
        broker.start()
        step(f"the broker is back on the same data and has recovered ({since(began)}); the pipeline goes on")
        seen = batches(folder)
        wait(lambda: batches(folder) > seen, "another batch", process, output)
        step("kill -9 of Spark: its driver, its JVM and its workers, in the middle of a batch")


def finish(bootstrap: str, folder: Path) -> None:
    closing = OPENING + timedelta(minutes=MINUTES, hours=1)
    with Producer(bootstrap) as producer:
        for customer in CITIES:  # an order much later closes the last window
            send(producer, ORDERS, customer, 1, closing)
    step("one order of an hour later closes the last window; what is left is done:")
    type_in("pipeline", "run", "--once", folder)
    step("the lag now, and the dead letters (orders that cost nothing):")
    show_lag()
    type_in("pipeline", "dlq", "ls", folder)


def show_lag() -> None:
    """Every Kafka tool sees it so: each query of a pipeline tells its progress as a group."""
    type_in("group", "show", "shop.totals")


def batches(folder: Path) -> int:
    """How many of the slowest sink are done."""
    try:
        told: dict[str, Any] = json.loads((folder / ".state" / "status.json").read_text())
    except FileNotFoundError:
        return 0
    done = [sink["batch"] for sink in told["sinks"]]
    return 0 if None in done or not done else min(done) + 1


# -- the proof ---------------------------------------------------------------------------------------------


def check(bootstrap: str, folder: Path, expected: Totals) -> Totals:
    """What was found, when it is what was expected."""
    found: Totals = Counter()
    windows = 0
    for record in read(bootstrap, "order-totals", isolation_level="read_committed"):
        row = json.loads(record.value or b"{}")
        at = datetime.fromisoformat(row["minute"])
        if at < OPENING + timedelta(minutes=MINUTES):
            found[f"{at:%H:%M}", row["city"]] += row["cents"]
            windows += 1
    with sqlite3.connect(folder / "ledger.db") as ledger:
        rows, orders = ledger.execute(
            "SELECT count(*), count(DISTINCT id) FROM orders WHERE id < ?", (ORDERS,)
        ).fetchone()
    step("the result, read back from the topic (read_committed):")
    print_totals(found)
    wanted = ORDERS - FREE_ORDERS
    verdict("each window came once, with the right sum", found == expected and windows == len(expected))
    verdict(f"the table has {wanted:,} orders: none lost, none twice", rows == orders == wanted)
    return found


def print_totals(totals: Totals) -> None:
    cities = list(CITIES.values())
    print("   minute " + "".join(f"{city:>12}" for city in cities))
    for minute in sorted({minute for minute, _ in totals}):
        print(f"   {minute}  " + "".join(f"{totals[minute, city] / 100:>12,.2f}" for city in cities))
    print()


def draw(totals: Totals) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    minutes = sorted({minute for minute, _ in totals})
    below = [0.0] * len(minutes)
    for city in CITIES.values():
        heights = [totals[minute, city] / 100 for minute in minutes]
        axes.bar(minutes, heights, bottom=below, label=city)
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_title("Orders by minute, through two kills")
    axes.set_ylabel("sum")
    axes.legend(ncols=len(CITIES), fontsize="small", loc="lower center")
    figure.savefig(PICTURE, dpi=120)


if __name__ == "__main__":
    main()
