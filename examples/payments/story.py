"""Payments are sent twice and Spark is killed; the ledger has each payment once, and every cent.

python -m examples.payments.story
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

from examples.telling import running, stage, step, type_in, verdict, wait

from ottla.client import Admin, Producer

PAYMENTS = 20_000
ACCOUNTS = ("Ada", "Grace", "Edsger", "Barbara", "Donald")

Balances = Counter[str]


def main() -> None:
    with stage("payments") as (broker, folder):
        expected = send(broker.bootstrap)
        step("`ottla pipeline run` begins …")
        output = folder / "run.out"
        with running(folder, output) as process:
            wait(lambda: len(ledger(folder)) > PAYMENTS // 10, "a tenth of the payments", process, output)
            entered = len(ledger(folder))
        step(f"… and is killed with -9, driver, JVM and workers, when {entered:,} payments are in the ledger")
        type_in("pipeline", "run", "--once", folder)
        type_in("pipeline", "dlq", "ls", folder)
        rows = ledger(folder)
        found: Balances = Counter()
        for _, account, cents in rows:
            found[account] += cents
        step("the balances:")
        for account, cents in sorted(found.items()):
            print(f"   {account:<8} {cents / 100:>12,.2f}")
        verdict(f"{PAYMENTS:,} payments: none lost, none twice", len(rows) == len(set(rows)) == PAYMENTS)
        verdict("every balance is right to the cent", found == expected)


def send(bootstrap: str) -> Balances:
    """A shop whose network is bad: it sends again what it is not sure of, soon or much later."""
    rng = random.Random(3)
    payments = [(f"p{number}", rng.choice(ACCOUNTS), rng.randrange(1, 100_000)) for number in range(PAYMENTS)]
    again = rng.sample(payments, PAYMENTS // 10)
    with Admin(bootstrap) as admin:
        admin.create_topic("payments", partitions=3)
    with Producer(bootstrap, linger_ms=5) as producer:
        for name, account, cents in payments + again:
            for _ in range(2 if rng.random() < 0.02 else 1):
                producer.send("payments", record(name, account, cents))
        producer.send("payments", record(None, "Ada", 1))  # nobody can tell which payment this is
    step(f"{PAYMENTS:,} payments sent, {len(again):,} of them again later, and some twice in a row")
    expected: Balances = Counter()
    for _, account, cents in payments:
        expected[account] += cents
    return expected


def record(name: str | None, account: str, cents: int) -> bytes:
    return json.dumps(
        {"payment": name, "account": account, "cents": cents, "at": "2026-11-01T10:00:00Z"}
    ).encode()


def ledger(folder: Path) -> list[tuple[str, str, int]]:
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        try:
            return database.execute("SELECT payment, account, cents FROM payments").fetchall()
        except sqlite3.OperationalError:  # it is not there yet
            return []


if __name__ == "__main__":
    main()
