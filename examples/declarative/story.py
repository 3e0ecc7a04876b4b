"""A project of Spark Declarative Pipelines that reads a topic and writes another, with Ottla as its format.

python -m examples.declarative.story
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet
from examples.telling import show, stage, step, verdict

from ottla.client import Admin, Producer, read
from ottla.spark.session import use_some_java, use_this_python

ORDERS = 5_000
CITIES = ("London", "New York", "Rotterdam", "Boston", "Stanford")
DEAR_CENTS = 90_000

Order = dict[str, Any]


def main() -> None:
    with stage("declarative") as (broker, folder):
        orders = make_orders()
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("orders", partitions=2)
            admin.create_topic("dear-orders", partitions=2)
        send(broker.bootstrap, orders[: ORDERS // 2])
        run_pipeline(folder)
        send(broker.bootstrap, orders[ORDERS // 2 :])
        step("once more, for the orders that came since: it goes on where it was")
        run_pipeline(folder)
        totals = pyarrow.parquet.read_table(folder / "spark-warehouse" / "totals").to_pylist()
        step("the table `totals`:")
        for row in sorted(totals, key=lambda row: row["city"]):
            print(f"   {row['city']:<10} {row['orders']:>6} orders {row['cents'] / 100:>14,.2f}")
        committed = read(broker.bootstrap, "dear-orders", isolation_level="read_committed")
        dear = [json.loads(each.value or b"") for each in committed]
        verdict("the totals are right", {row["city"]: row["orders"] for row in totals} == count(orders))
        wanted = sorted(order["id"] for order in orders if order["cents"] >= DEAR_CENTS)
        verdict(
            f"{len(wanted)} dear orders, each once in its topic",
            sorted(each["id"] for each in dear) == wanted,
        )


def make_orders() -> list[Order]:
    rng = random.Random(5)
    return [
        {"id": number, "city": rng.choice(CITIES), "cents": rng.randrange(100, 100_000)}
        for number in range(ORDERS)
    ]


def count(orders: list[Order]) -> dict[str, int]:
    return dict(Counter(order["city"] for order in orders))


def send(bootstrap: str, orders: list[Order]) -> None:
    with Producer(bootstrap, linger_ms=5) as producer:
        for order in orders:
            producer.send("orders", json.dumps(order).encode(), order["city"].encode())
    step(f"{len(orders):,} orders sent")


def run_pipeline(folder: Path) -> None:
    """Its own command, with a catalog that keeps tables from run to run."""
    use_this_python()
    use_some_java()
    specification = folder / "spark-pipeline.yml"
    storage = folder.absolute() / "storage"
    specification.write_text(specification.read_text().replace("file:///STORAGE", storage.as_uri()))
    arguments = ["run", "--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false"]
    print("   $ spark-pipelines run --conf spark.sql.catalogImplementation=hive", flush=True)
    program = Path(sys.executable).parent / "spark-pipelines"
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = [line for line in done.stdout.splitlines() if line.endswith("COMPLETED.")]
    show("\n".join(said) if done.returncode == 0 else done.stdout)
    if done.returncode:
        sys.exit(f"this ended with {done.returncode}")


if __name__ == "__main__":
    main()
