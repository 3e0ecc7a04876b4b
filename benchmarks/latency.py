"""Does a slow disk hold up producers? Produce latency alone, beside a cold reader, beside slow syncs.

    python -m benchmarks.latency [--rate 500] [--seconds 10] [--read-mib-s 100] [--sync-delay-ms 50]

acks=1 answers after the write, so neither a reader whose data is not in memory nor a sync that takes long
may show in its latency. The readers read a large topic over and over at a fixed rate, so they do not just
fight with producer and broker for the processors; before each pass of the cold one its pages are dropped. The
reader of memory is the control: what it costs is the price of any reader. The slow syncs are delayed in the C
library. Compare within one run only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from benchmarks.peer import Peer

from ottla.protocol import apis
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.content import Record, build_batch
from ottla.testing import BrokerProcess

MIB = 1024 * 1024
RECORDS_PER_BATCH = 900
SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
#define SLOW(name) int name(int fd) { \\
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, #name); usleep(DELAY_US); return real(fd); }
SLOW(fdatasync)
SLOW(fsync)
SLOW(syncfs)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--cold-mib", type=int, default=512)
    parser.add_argument("--read-mib-s", type=int, default=100, help="0: as fast as they can")
    parser.add_argument("--sync-delay-ms", type=int, default=50)
    options = parser.parse_args()
    rows = []
    with BrokerProcess(fresh=True) as broker:
        create_topics(broker)
        fill(broker, options.cold_mib)
        measure(broker, options.rate, 2)  # warm-up
        rows.append(("alone", measure(broker, options.rate, options.seconds)))
        for kind in ("reader of memory", "cold reader"):
            with reader(broker, cold=kind == "cold reader", mib_s=options.read_mib_s) as read:
                rows.append((f"beside a {kind}", measure(broker, options.rate, options.seconds)))
            print(f"the {kind} got {read.value / MIB:,.0f} MiB")
    with (
        tempfile.TemporaryDirectory() as folder,
        BrokerProcess(env={"LD_PRELOAD": slow_sync(Path(folder), options.sync_delay_ms)}) as broker,
    ):
        create_topics(broker)
        measure(broker, options.rate, 2)
        rows.append(
            (f"syncs take {options.sync_delay_ms} ms more", measure(broker, options.rate, options.seconds))
        )
    show(rows)


def create_topics(broker: BrokerProcess) -> None:
    topics = [CreatableTopic("live", 1, 1), CreatableTopic("cold", 1, 1)]
    Peer(broker.bootstrap).call(apis.CREATE_TOPICS, 5, CreateTopicsRequest(topics))


def produce(topic: str, batch: bytes) -> ProduceRequest:
    return ProduceRequest(
        None, 1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])]
    )


def fill(broker: BrokerProcess, mib: int) -> None:
    peer = Peer(broker.bootstrap)
    value = os.urandom(1000)
    now_ms = int(time.time() * 1000)
    batch = build_batch([Record(number, now_ms, None, value) for number in range(RECORDS_PER_BATCH)])
    for _ in range(mib * MIB // len(batch)):
        peer.call(apis.PRODUCE, 9, produce("cold", batch))


def measure(broker: BrokerProcess, rate: int, seconds: float) -> list[float]:
    """Milliseconds of each request, from when it should have left: a stall counts for all it delays."""
    peer = Peer(broker.bootstrap)
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"x" * 100)])
    latencies = []
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        while (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        peer.call(apis.PRODUCE, 9, produce("live", batch))
        latencies.append((time.perf_counter() - due) * 1000)
    peer.socket.close()
    return sorted(latencies)


@contextmanager
def reader(broker: BrokerProcess, *, cold: bool, mib_s: int) -> Iterator[Synchronized[int]]:
    """Reads the large topic over and over in a process of its own."""
    stop = multiprocessing.Event()
    read = multiprocessing.Value("q", 0)
    dropped = [str(path) for path in broker.data_dir.glob("log/cold-0/*")] if cold else []
    process = multiprocessing.Process(target=read_on, args=(broker.bootstrap, dropped, mib_s, stop, read))
    process.start()
    try:
        yield read
    finally:
        stop.set()
        process.join()


def read_on(bootstrap: str, dropped: list[str], mib_s: int, stop: Event, read: Synchronized[int]) -> None:
    peer = Peer(bootstrap)
    offset = 0
    began = time.perf_counter()
    while not stop.is_set():
        if offset == 0:
            drop_pages(dropped)
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=MIB)
        topics = [FetchTopic("cold", partitions=[asked])]
        answer = peer.call(apis.FETCH, 12, FetchRequest(max_wait_ms=0, max_bytes=MIB, topics=topics))
        records = answer.responses[0].partitions[0].records
        read.value += len(records)
        offset = offset + RECORDS_PER_BATCH if records else 0
        ahead = read.value / MIB / mib_s - (time.perf_counter() - began) if mib_s else 0
        if ahead > 0:
            time.sleep(ahead)


def drop_pages(paths: list[str]) -> None:
    for path in paths:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def slow_sync(folder: Path, delay_ms: int) -> str:
    source, library = folder / "slow_sync.c", folder / "slow_sync.so"
    source.write_text(SLOW_SYNC)
    command = ["cc", "-shared", "-fPIC", f"-DDELAY_US={delay_ms * 1000}", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    return str(library)


def show(rows: list[tuple[str, list[float]]]) -> None:
    print(f"\n{'produce, acks=1, ms':<26}{'p50':>9}{'p99':>9}{'p99.9':>9}{'max':>9}   p99 against alone")
    alone = quantile(rows[0][1], 0.99)
    for name, latencies in rows:
        figures = [quantile(latencies, share) for share in (0.5, 0.99, 0.999, 1)]
        print(f"{name:<26}" + "".join(f"{each:9.2f}" for each in figures) + f"   {figures[1] / alone:.2f}")


def quantile(ascending: list[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(len(ascending) * share))]


if __name__ == "__main__":
    main()
