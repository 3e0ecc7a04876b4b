"""`make demo`: a broker, orders, a pipeline on Spark, two kills, and the proof that each order counted once.

Everything runs in `.demo/`: the broker with its coordination service, the pipeline of `orders_pipeline/`, and
at the end a picture. The orders come from Ottla's own client, the totals are checked against a plain sum.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ottla.client import Admin, Producer, read
from ottla.testing import BrokerProcess

HOME = Path(".demo")
FOLDER = HOME / "pipeline"
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
PATIENCE_SECONDS = 120

Totals = Counter[tuple[str, str]]


def main() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
    began = time.monotonic()
    with BrokerProcess(HOME / "broker", fresh=True) as broker:
        step(f"a broker with its coordination service is up at {broker.bootstrap} ({since(began)})")
        expected = produce(broker.bootstrap)
        shutil.copytree(Path(__file__).parent / "orders_pipeline", FOLDER)
        step(f"the pipeline: {FOLDER}/pipeline.toml (orders → valid → totals by minute and city)")
        show(ottla("pipeline", "graph", str(FOLDER)))
        run_through_two_kills(broker)
        finish(broker.bootstrap)
        draw(check(broker.bootstrap, expected))
    for leftover in ("broker", "pipeline"):
        shutil.rmtree(HOME / leftover)
    step(f"done in {since(began)}. Where to look next:")
    print(f"   {PICTURE}                     the orders by minute")
    print("   .venv/bin/ottla up -d               a broker of your own, for any Kafka client")
    print("   .venv/bin/ottla pipeline new shop   a pipeline of your own")
    print("   examples/, docs/pipelines.md        more of them")


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


def run_through_two_kills(broker: BrokerProcess) -> None:
    step("`ottla pipeline run` starts Spark; the lag of its queries, as every Kafka tool sees it:")
    with running_pipeline(broker.bootstrap) as pipeline:
        wait(lambda: batches(pipeline) >= 2, pipeline, "two batches")
        show_lag(broker.bootstrap)
        step("kill -9 of the broker in the middle of a batch")
        broker.kill()
        time.sleep(1)
        began = time.monotonic()
        broker.start()
        step(f"the broker is back on the same data and has recovered ({since(began)}); the pipeline goes on")
        seen = batches(pipeline)
        wait(lambda: batches(pipeline) > seen, pipeline, "another batch")
        step("kill -9 of Spark: its driver, its JVM and its workers, in the middle of a batch")


def finish(bootstrap: str) -> None:
    closing = OPENING + timedelta(minutes=MINUTES, hours=1)
    with Producer(bootstrap) as producer:
        for customer in CITIES:  # an order much later closes the last window
            send(producer, ORDERS, customer, 1, closing)
    step("one order of an hour later closes the last window; `ottla pipeline run --once` does what is left:")
    show(ottla("pipeline", "run", "--once", str(FOLDER), "-b", bootstrap))
    step("the lag now:")
    show_lag(bootstrap)
    step("and the dead letters, orders that cost nothing:")
    show(ottla("pipeline", "dlq", "ls", str(FOLDER), "-b", bootstrap))


def show_lag(bootstrap: str) -> None:
    show(ottla("group", "show", "shop.totals", "-b", bootstrap))


class running_pipeline:  # noqa: N801  # used as a word
    """`ottla pipeline run` in processes of its own, all of which are killed at the end."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def __enter__(self) -> subprocess.Popen[bytes]:
        with (HOME / "run.out").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ottla", "pipeline", "run", str(FOLDER), "-b", self._bootstrap],
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        return self._process

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def batches(pipeline: subprocess.Popen[bytes]) -> int:
    """How many of the slowest sink are done."""
    if pipeline.poll() is not None:
        sys.exit(f"the pipeline ended early:\n{(HOME / 'run.out').read_text()}")
    try:
        told: dict[str, Any] = json.loads((FOLDER / ".state" / "status.json").read_text())
    except FileNotFoundError:
        return 0
    done = [sink["batch"] for sink in told["sinks"]]
    return 0 if None in done or not done else min(done) + 1


def wait(condition: Callable[[], bool], pipeline: subprocess.Popen[bytes], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"no {what} within {PATIENCE_SECONDS} s:\n{(HOME / 'run.out').read_text()}")
        time.sleep(0.05)


def ottla(*arguments: str) -> str:
    command = [sys.executable, "-m", "ottla", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# -- the proof ---------------------------------------------------------------------------------------------


def check(bootstrap: str, expected: Totals) -> Totals:
    """What was found, when it is what was expected."""
    found: Totals = Counter()
    windows = 0
    for record in read(bootstrap, "order-totals", isolation_level="read_committed"):
        row = json.loads(record.value or b"{}")
        at = datetime.fromisoformat(row["minute"])
        if at < OPENING + timedelta(minutes=MINUTES):
            found[f"{at:%H:%M}", row["city"]] += row["cents"]
            windows += 1
    with sqlite3.connect(FOLDER / "ledger.db") as ledger:
        rows, orders = ledger.execute(
            "SELECT count(*), count(DISTINCT id) FROM orders WHERE id < ?", (ORDERS,)
        ).fetchone()
    step("the result, read back from the topic (read_committed):")
    print_totals(found)
    wanted = ORDERS - FREE_ORDERS
    verdict("each window came once, with the right sum", found == expected and windows == len(expected))
    verdict(f"the table has {wanted:,} orders: none lost, none twice", rows == orders == wanted)
    return found


def verdict(text: str, holds: bool) -> None:
    print(f"   {'ok  ' if holds else 'FAIL'} {text}")
    if not holds:
        sys.exit(1)


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


def step(text: str) -> None:
    print(f"-> {text}", flush=True)


def show(text: str) -> None:
    print("".join(f"   {line}\n" for line in text.splitlines()), flush=True)


def since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


if __name__ == "__main__":
    main()
