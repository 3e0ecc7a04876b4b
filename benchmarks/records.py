"""Record batches: what checking, stamping, building and reading costs, against aiokafka and kafka-python.

    python -m benchmarks.records

CPU time of this process, best of several runs: the ratios travel between machines, the figures do not.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka.record.default_records as aiokafka_records

from ottla.records import kernel_choice
from ottla.records.batch import HEADER_BYTES, ProduceRules, check_produced, read_header, scan, stamp
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch, check_content, records_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.record.default_records as kafka_python_records

NOW = 1_700_000_000_000
RECORD_COUNT = 10_000
RECORDS = [Record(i, NOW + i, b"key-%05d" % i, bytes(90) + b"%010d" % i) for i in range(RECORD_COUNT)]
RULES = ProduceRules(1 << 30, (1 << 63) - 1, 3_600_000, log_append_time=False)
COMPACTED = RULES._replace(keys_needed=True)


def seconds(function: Callable[[], object], runs: int = 7, slice_s: float = 0.05) -> float:
    """CPU seconds of one call."""
    calls = 1
    best = float("inf")
    for _ in range(runs + 8):
        start = time.process_time()
        for _ in range(calls):
            function()
        spent = time.process_time() - start
        if spent < slice_s:
            calls = max(calls * 2, int(calls * slice_s / max(spent, 1e-6)))
        else:
            best = min(best, spent / calls)
    return best


def kernels() -> Iterator[str]:
    """Switches from one kernel to the other; the better one comes last and stays."""
    for name, prefix in (("source", ""), ("compiled", "_")):
        try:
            kernel_choice.record_kernel = importlib.import_module(f"ottla.records.{prefix}kernel")
            kernel_choice.header_kernel = importlib.import_module(f"ottla.records.{prefix}kernel_header")
            kernel_choice.scan_kernel = importlib.import_module(f"ottla.records.{prefix}kernel_scan")
        except ModuleNotFoundError:
            print(f"  ({name}: not built here)")
        else:
            yield name


def small_batches() -> None:
    one = memoryview(build_batch([RECORDS[0]], producer_id=1, producer_epoch=0, base_sequence=0))
    checked = check_produced(one, 9, RULES, NOW)
    run = bytes(one) * 1_000
    theirs = {"aiokafka": aiokafka_records, "kafka-python": kafka_python_records}
    print(f"\nOne batch of one record ({len(one)} bytes), µs")
    rows = {
        f"check a produced batch, {name}": seconds(lambda: check_produced(one, 9, RULES, NOW))
        for name in kernels()
    }
    rows |= {
        "stamp it": seconds(lambda: stamp(checked, 1_000, 3)),
        "stamp it with log append time": seconds(lambda: stamp(checked, 1_000, 3, NOW)),
        "read its header": seconds(lambda: read_header(one)),
        "scan, per batch": seconds(lambda: sum(1 for _ in scan(run))) / 1_000,
    }
    data = bytes(one)
    for name, client in theirs.items():
        rows[f"{name}: header and CRC"] = seconds(lambda c=client: c.DefaultRecordBatch(data).validate_crc())
    for name, spent in rows.items():
        print(f"  {name:<34} {spent * 1e6:7.2f}")


def client_build(client: Any, codec: int) -> bytes:
    builder = client.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 30)
    for offset, timestamp, key, value, _ in RECORDS:
        builder.append(offset, timestamp, key, value, [])
    return bytes(builder.build())


def client_read(client: Any, batch: bytes) -> int:
    read = client.DefaultRecordBatch(batch)
    assert read.validate_crc()
    return sum(1 for record in read if (record.offset, record.timestamp, record.key, record.value))


def large_batches() -> None:
    print(f"\nA batch of {RECORD_COUNT} records of 100 bytes, million records a second")
    print(f"  {'':<22} {'build':>9} {'read':>9} {'check':>9}")
    for name in kernels():
        batch = build_batch(RECORDS)
        checked = check_produced(memoryview(batch), 9, RULES, NOW)
        row(
            f"ottla, {name}",
            seconds(lambda: build_batch(RECORDS)),
            seconds(lambda b=batch: sum(1 for _ in records_of(b))),
            seconds(lambda c=checked: check_content(c, COMPACTED, NOW)),
        )
    for name, client in (("aiokafka", aiokafka_records), ("kafka-python", kafka_python_records)):
        batch = client_build(client, 0)
        row(
            name,
            seconds(lambda c=client: client_build(c, 0)),
            seconds(lambda c=client, b=batch: client_read(c, b)),
        )


def row(name: str, *spent: float) -> None:
    print(f"  {name:<22} " + " ".join(f"{RECORD_COUNT / s / 1e6:9.2f}" for s in spent))


def codecs() -> None:
    plain = len(build_batch(RECORDS)) - HEADER_BYTES
    print(
        f"\nThe same batch by codec ({plain} bytes of records), MB/s of plain bytes (ottla's better kernel)"
    )
    print(f"  {'':<10} {'ratio':>7} {'build':>9} {'read':>9} {'check':>9} {'aiokafka build':>16} {'read':>9}")
    for codec in Codec:
        batch = build_batch(RECORDS, codec=codec)
        checked = check_produced(memoryview(batch), 9, RULES, NOW)
        theirs = client_build(aiokafka_records, codec)
        spent = (
            seconds(lambda c=codec: build_batch(RECORDS, codec=c), runs=3),
            seconds(lambda b=batch: sum(1 for _ in records_of(b)), runs=3),
            seconds(lambda c=checked: check_content(c, COMPACTED, NOW), runs=3),
            seconds(lambda c=codec: client_build(aiokafka_records, c), runs=3),
            seconds(lambda b=theirs: client_read(aiokafka_records, b), runs=3),
        )
        rates = [f"{plain / s / 1e6:9.0f}" for s in spent]
        rates[3] = rates[3].rjust(16)
        print(f"  {codec.name.lower():<10} {plain / (len(batch) - HEADER_BYTES):7.1f} " + " ".join(rates))


if __name__ == "__main__":
    small_batches()
    large_batches()
    codecs()
