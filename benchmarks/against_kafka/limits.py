"""What this machine can do at most, measured in the same run: loopback, sendfile, memory, disk."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import empty_broker
from benchmarks.against_kafka.bench import Clients
from benchmarks.against_kafka.families.librdkafka import READER, WRITER
from benchmarks.against_kafka.families.partitions import MANY, write_to_all_in_turn
from benchmarks.memory import fetch_memory
from benchmarks.processes import SERVER_CORE, on_core
from benchmarks.questions import KIB, MIB
from benchmarks.raw_load import NO_ID, SOURCE, Shape, compiled, least_disturbed
from benchmarks.rdkafka_load import RdkafkaLoad

_REQUEST = (60).to_bytes(4, "big") + bytes(60)  # about as long as a Fetch of one partition
_COPIED_BYTES = 64 * MIB
_SYNCED_BYTES = 4 * KIB
_APPENDED_MIB_MAX = 4 * KIB  # in a run of about a second
_CONSUMED_BYTES = 256 * MIB
_CEILING_RUNS = 3


@dataclass(frozen=True)
class Limit:
    name: str
    unit: str
    value: float
    bounds: str = ""  # the row that cannot be better


def measure(folder: Path, clients: Clients, seconds: float, rows: Collection[str]) -> list[Limit]:
    """What one client alone can do is measured for the rows that are asked for."""
    load = clients.raw
    program = compiled(SOURCE.with_name("raw_server.c"), folder)
    data = folder / "data"
    data.write_bytes(os.urandom(MIB))

    def ask(shape: Shape, *arguments: str) -> dict[str, float]:
        with _serving(program, *arguments) as address:
            return least_disturbed(
                lambda: load.start(address, _REQUEST, shape, seconds, id_at=NO_ID).result()
            )

    limits = [
        Limit(
            "loopback echo, 64 connections",
            "/s",
            ask(Shape(64), "echo")["per_second"],
            "ApiVersions, 64 connections",
        )
    ]
    slow = ask(Shape(1, rate=500), "echo")
    for share in ("p50", "p99"):
        bounds = f"1 record at 500/s, {share}"
        limits.append(Limit(f"loopback echo at 500/s, {share}", "µs", slow[f"{share}_us"], bounds))
    for what, size in (("64 KiB", 64 * KIB), ("1 MiB", MIB)):
        figure = ask(Shape(4), "sendfile", str(data), str(size))["received_mb_per_second"]
        limits.append(
            Limit(f"sendfile {what}, 4 connections", "MB/s", figure, f"fetch {what}, 4 connections")
        )

    def append(size: int, shape: Shape) -> dict[str, float]:
        request = size.to_bytes(4, "big") + os.urandom(size)
        fetch_memory(_APPENDED_MIB_MAX)
        with _serving(program, "append", str(folder / "appended")) as address:
            return load.start(address, request, shape, seconds, id_at=NO_ID).result()

    for what, size, shape in (("16 KiB", 16 * KIB, Shape(4, 4)), ("1 MiB", MIB, Shape(4, 2))):
        figure = least_disturbed(partial(append, size, shape))["sent_mb_per_second"]
        (folder / "appended").unlink()
        name = f"{what}, {shape.connections} x {shape.in_flight} in flight"
        limits.append(Limit(f"receive and append {name}", "MB/s", figure, f"produce {name}"))
    limits += _ceilings(clients.rdkafka, seconds, rows)
    limits.append(Limit("memcpy of 64 MiB", "MB/s", _memcpy_mb_per_second()))
    limits.append(Limit("append of 4 KiB and fdatasync, median", "µs", _sync_us(folder / "synced", seconds)))
    return limits


def _ceilings(rdkafka: RdkafkaLoad, seconds: float, rows: Collection[str]) -> list[Limit]:
    """What librdkafka itself can do at most: with a broker that does nothing for it."""
    limits = []
    for size in (100, KIB):
        with empty_broker.serving(size) as address:
            write = partial(rdkafka.produce, address, "bench", size, WRITER, seconds=seconds)
            read = partial(rdkafka.consume, address, "bench", _CONSUMED_BYTES // size, READER)
            for what, run in (("produce", write), ("consume", read)):
                row = f"librdkafka {what} {size:,} B"
                if row in rows:
                    found = [least_disturbed(run)["per_second"] for _ in range(_CEILING_RUNS)]
                    limits.append(
                        Limit(f"{row}, broker that keeps nothing", "/s", statistics.median(found), row)
                    )
    row = f"{MANY:,} partitions: librdkafka 100 B to all"
    if row in rows:
        with empty_broker.serving(100, MANY) as address:
            write = partial(write_to_all_in_turn, rdkafka, address, "bench", MANY)
            name = f"librdkafka 100 B to {MANY:,} partitions, broker that keeps nothing"
            limits.append(Limit(name, "/s", least_disturbed(write)["per_second"], row))
    return limits


@contextmanager
def _serving(program: Path, *arguments: str) -> Iterator[str]:
    with on_core(SERVER_CORE):
        server = subprocess.Popen([program, *arguments], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        yield f"127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.send_signal(signal.SIGKILL)
        server.communicate()


def _memcpy_mb_per_second() -> float:
    source, target = memoryview(bytearray(_COPIED_BYTES)), bytearray(_COPIED_BYTES)
    times = []
    for _ in range(10):
        began = time.perf_counter()
        target[:] = source
        times.append(time.perf_counter() - began)
    return _COPIED_BYTES / statistics.median(times) / 1e6


def _sync_us(path: Path, seconds: float) -> float:
    times = []
    data = os.urandom(_SYNCED_BYTES)
    with path.open("wb", buffering=0) as file:
        end = time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            file.write(data)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    path.unlink()
    return statistics.median(times) * 1e6
