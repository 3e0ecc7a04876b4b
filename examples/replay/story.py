"""A bug went live on the second day; its results are replaced by right ones, and only those.

python -m examples.replay.story
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.telling import stage, step, type_in, verdict

from ottla.client import Admin, Producer

FIRST_DAY = datetime(2026, 11, 1, 9, tzinfo=UTC)
ORDERS_A_DAY = 500
ARTICLES = {"tea": 300, "cups": 1_250, "kettle": 4_900}


def main() -> None:
    with stage("replay") as (broker, folder):
        expected = send(broker.bootstrap)
        sql = folder / "sql" / "revenue.sql"
        right = sql.read_text()
        sql.write_text(right.replace("cents * quantity AS cents", "cents"))
        step("the pipeline as it was: nobody had thought of quantities")
        type_in("pipeline", "run", "--once", folder)
        rows, wrong = revenue(folder)
        step(f"{rows} orders brought in {wrong / 100:,.2f}, the shop says {expected / 100:,.2f}")
        verdict("so something is wrong", wrong != expected)
        step("an example of what should come out, in tests/two_of_one, shows the bug:")
        type_in("pipeline", "test", folder, succeeds=False)
        sql.write_text(right)
        step("mended:")
        type_in("pipeline", "test", folder)
        step("what would be done again, from the day on which quantities came:")
        again = ("pipeline", "backfill", folder, "--sink", "revenue", "--from", "@2026-11-02T00:00Z")
        type_in(*again, "--dry-run")
        type_in(*again, "--yes")
        rows, mended = revenue(folder)
        step(f"{rows} orders brought in {mended / 100:,.2f}")
        verdict("the same orders, none twice", rows == 2 * ORDERS_A_DAY)
        verdict("the revenue is right to the cent", mended == expected)


def send(bootstrap: str) -> int:
    """Two days of orders; from the second on, people order several of one. Returns the revenue."""
    with Admin(bootstrap) as admin:
        admin.create_topic("orders", partitions=2, configs={"retention.ms": "-1"})  # all that ever came
    total = 0
    with Producer(bootstrap, linger_ms=5) as producer:
        for number in range(2 * ORDERS_A_DAY):
            day, position = divmod(number, ORDERS_A_DAY)
            article = list(ARTICLES)[number % len(ARTICLES)]
            quantity = 1 if day == 0 else 1 + number % 3
            at = FIRST_DAY + timedelta(days=day, minutes=position)
            order = {"id": number, "article": article, "cents": ARTICLES[article], "quantity": quantity}
            producer.send(
                "orders", json.dumps(order).encode(), b"%d" % number, timestamp_ms=int(at.timestamp() * 1000)
            )
            total += ARTICLES[article] * quantity
    step(f"{2 * ORDERS_A_DAY} orders of two days are in the topic")
    return total


def revenue(folder: Path) -> tuple[int, int]:
    with closing(sqlite3.connect(folder / "revenue.db")) as database:
        rows, cents = database.execute("SELECT count(*), sum(cents) FROM revenue").fetchone()
        return rows, cents


if __name__ == "__main__":
    main()
