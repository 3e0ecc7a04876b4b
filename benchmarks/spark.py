"""Topics in Spark: ours against the Kafka connector of Spark itself, each on our broker and on Apache Kafka.

    python -m benchmarks.spark [--records 10000000] [--repeats 3] [--cases count,noop,...]

Needs java and mvn. Each connector on each broker gets a Spark of its own (`benchmarks.spark_job`, local[2]),
on the same records; processor time is that of the driver with its workers, and of the broker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.against_kafka.brokers import ApacheKafka, Broker, Ottla

from ottla.client.admin import Admin

CASES = ("count", "noop", "parquet", "rewrite", "copy", "write", "available_now", "latency", "memory")
_PARTITIONS = 4
_VALUE_BYTES = (100, 1024)
_FILL_CHUNK = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=10_000_000, help="of 100 bytes; a tenth of them of 1 KiB"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--pairs", default="ottla@Ottla,kafka@Apache Kafka,ottla@Apache Kafka,kafka@Ottla")
    options = parser.parse_args()
    pairs = [tuple(pair.split("@")) for pair in options.pairs.split(",")]
    rows: list[dict[str, Any]] = []
    try:
        with tempfile.TemporaryDirectory(prefix="ottla-spark-") as folder:
            for kind in (Ottla, ApacheKafka):
                connectors = [connector for connector, name in pairs if name == kind.name]
                if connectors:
                    rows.extend(_on_broker(kind(Path(folder) / kind.__name__, {}), connectors, options))
    finally:
        _print_table(rows)  # also of a run that somebody ends


def _on_broker(
    broker: Broker, connectors: list[str], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    broker.start()
    try:
        with Admin(broker.address) as admin:
            for size in _VALUE_BYTES:
                _fill(admin, broker, f"in-{size}", _count(options.records, size), size)
        for connector in connectors:
            yield from _run_job(broker, connector, options)
    finally:
        broker.discard()


def _count(records: int, size: int) -> int:
    return records if size == _VALUE_BYTES[0] else records // 10


def _fill(admin: Admin, broker: Broker, topic: str, count: int, size: int) -> None:
    import pyarrow

    from ottla.client.producer import Producer

    admin.create_topic(topic, partitions=_PARTITIONS, replication_factor=1)
    noise = pyarrow.py_buffer(os.urandom(size * _FILL_CHUNK))
    ends = pyarrow.py_buffer(array("i", range(0, size * (_FILL_CHUNK + 1), size)))
    with Producer(broker.address) as producer:
        for start in range(0, count, _FILL_CHUNK):
            rows = min(_FILL_CHUNK, count - start)
            keys = pyarrow.array([b"%08d" % number for number in range(start, start + rows)])
            values = pyarrow.Array.from_buffers(pyarrow.binary(), rows, [None, ends, noise])
            producer.send_arrow(pyarrow.table({"key": keys, "value": values}), topic).result()


def _run_job(broker: Broker, connector: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    arguments = [connector, broker.address, str(broker.pid), str(options.records), str(options.repeats)]
    command = [sys.executable, "-m", "benchmarks.spark_job", *arguments, options.cases]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            row = {"broker": broker.name, "connector": connector, **json.loads(line)}
            print(row, file=sys.stderr, flush=True)
            yield row
    if job.returncode:
        raise SystemExit(f"{connector} on {broker.name} ended with {job.returncode}")


def _print_table(rows: list[dict[str, Any]]) -> None:
    print("| case | value | connector | broker | result | CPU-s per million: Spark | broker |")
    print("|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda each: (CASES.index(each["case"]), each["bytes"])):
        cpu = [
            f"{row[name]:.2f}" if row.get(name) is not None else "" for name in ("spark_cpu", "broker_cpu")
        ]
        print(
            f"| {row['case']} | {row['bytes']} B | {row['connector']} | {row['broker']} | {row['result']} "
            f"| {cpu[0]} | {cpu[1]} |"
        )


if __name__ == "__main__":
    main()
