"""A table changes; its changes arrive out of order, and another table becomes the same nevertheless.

    python -m examples.table_changes.story

Triggers write down each change of `customers` with a number, as a database's own log would. The changes are
sent without a key and shuffled, so that inserts, updates and deletes of a row overtake each other.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from examples.telling import stage, step, type_in, verdict

from ottla.client import Admin, Producer

CHANGES = 3_000
CUSTOMERS = 200
NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald")
CITIES = ("London", "New York", "Rotterdam", "Boston", "Stanford")
SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE changes (version INTEGER PRIMARY KEY, op TEXT, id INTEGER, name TEXT, city TEXT);
CREATE TRIGGER inserted AFTER INSERT ON customers
BEGIN INSERT INTO changes (op, id, name, city) VALUES ('insert', new.id, new.name, new.city); END;
CREATE TRIGGER updated AFTER UPDATE ON customers
BEGIN INSERT INTO changes (op, id, name, city) VALUES ('update', new.id, new.name, new.city); END;
CREATE TRIGGER deleted AFTER DELETE ON customers
BEGIN INSERT INTO changes (op, id) VALUES ('delete', old.id); END;
"""

Row = tuple[Any, ...]


def main() -> None:
    with stage("table_changes") as (broker, folder):
        shop = folder / "shop.db"
        changes = make_changes(shop)
        send(broker.bootstrap, changes)
        step("the changes, in the order of their arrival, applied by Spark in batches of 600:")
        type_in("pipeline", "run", "--once", folder)
        ours, theirs = table(folder / "copy.db"), table(shop)
        step(f"{len(theirs)} customers are in the shop's table, {len(ours)} in the copy:")
        for row in ours[:3]:
            print(f"   {row}")
        print("   …")
        verdict("both tables have the same rows", ours == theirs)


def make_changes(shop: Path) -> list[Row]:
    rng = random.Random(11)
    with closing(sqlite3.connect(shop)) as database:
        database.executescript(SHOP)
        for _ in range(CHANGES):
            number = rng.randrange(CUSTOMERS)
            there = database.execute("SELECT 1 FROM customers WHERE id = ?", (number,)).fetchone()
            name, city = rng.choice(NAMES), rng.choice(CITIES)
            if there is None:
                database.execute("INSERT INTO customers VALUES (?, ?, ?)", (number, name, city))
            elif rng.random() < 0.3:
                database.execute("DELETE FROM customers WHERE id = ?", (number,))
            else:
                database.execute("UPDATE customers SET name = ?, city = ? WHERE id = ?", (name, city, number))
        database.commit()
        return database.execute("SELECT version, op, id, name, city FROM changes").fetchall()


def send(bootstrap: str, changes: list[Row]) -> None:
    arriving = changes.copy()
    random.Random(12).shuffle(arriving)
    with Admin(bootstrap) as admin:
        admin.create_topic("customer-changes", partitions=3)
    with Producer(bootstrap, linger_ms=5) as producer:
        for row in arriving:
            change = dict(zip(("version", "op", "id", "name", "city"), row, strict=True))
            producer.send("customer-changes", json.dumps(change).encode())
    latest: dict[int, int] = {}
    overtaken = 0
    for version, _, number, *_ in arriving:
        overtaken += latest.get(number, 0) > version
        latest[number] = max(version, latest.get(number, 0))
    step(f"{len(changes):,} inserts, updates and deletes of {CUSTOMERS} customers; shuffled on their way,")
    step(f"{overtaken:,} of them arrive behind a later change of the same customer")


def table(path: Path) -> list[Row]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT id, name, city FROM customers ORDER BY id").fetchall()


if __name__ == "__main__":
    main()
