"""How fast compaction is, and whether clients notice it.

    python -m benchmarks.cleaner [--mib 64] [--rate 300] [--seconds 6] [--rounds 3] [--busy 2]

First the speed of a pass, by codec and size of batches, with the kernel that is there. Then produce latency:
alone, beside a cleaner in a process of its own (as the broker runs it), and beside the same cleaner in a
thread of the broker's process (as it could be run with a compiled kernel). The three take turns; compare
within one run only. `--busy` keeps that many processors busy with endless loops, as other services would,
each in a session of its own, because Linux shares the processors between sessions first; it measures
latencies only.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.latency import quantile
from benchmarks.peer import Peer

from ottla.log.cleaner import Cleaner
from ottla.log.cleaning_job import CleanedGroup, CleaningJob
from ottla.log.cleaning_plan import Resources, find_cleanable, make_job
from ottla.log.directory import LogDirectory
from ottla.log.flusher import Flusher
from ottla.log.system_files import SystemFiles
from ottla.model.configs import DEFAULT_TOPIC_CONFIG
from ottla.model.topics import TopicId, TopicPartition
from ottla.model.values import replace
from ottla.node.broker import Broker
from ottla.node.cleaner_process import CleanerProcess
from ottla.node.settings import load_settings
from ottla.protocol import apis
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records import kernel_choice
from ottla.records.batch import CheckedBatch, read_header
from ottla.records.compression import Codec
from ottla.records.content import Record, build_batch

MIB = 1024 * 1024
NOW_MS = 1_700_000_000_000
CONFIG = replace(DEFAULT_TOPIC_CONFIG, cleanup_compact=True, cleanup_delete=False, segment_bytes=32 * MIB)
RESOURCES = Resources(128 * MIB, 0.9, 256 * 1024, 1e308)
MODES = ("alone", "a process", "a thread")
ACKS = (1, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rate", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory(dir=os.environ.get("OTTLA_BENCH_DIR")) as folder:
        if not options.busy:
            show_speeds(folder, options.mib)
        with busy(options.busy):
            show_latencies(folder, options)


# -- speed -------------------------------------------------------------------------------------------------


def show_speeds(folder: str, mib: int) -> None:
    kernel = "compiled" if kernel_choice.kernel_is_compiled() else "uncompiled"
    print(f"records of 100 bytes, half of them outdated, {kernel} kernel; before compression, cleaned")
    print("in a second of processor time:")
    for codec, records in (
        (Codec.NONE, 150),
        (Codec.NONE, 1),
        (Codec.LZ4, 150),
        (Codec.ZSTD, 150),
        (Codec.GZIP, 150),
    ):
        mib_plain = mib if records > 1 else mib // 8
        job = fill(os.path.join(folder, f"{codec.name}-{records}"), mib_plain, codec, records)
        began = time.process_time()
        cleaned = Cleaner(SystemFiles(), job, lambda size: None, lambda group: None).run()
        seconds = time.process_time() - began
        size = sum(segment.size for segment in job.segments) / MIB
        print(
            f"  {codec.name.lower():<6}{records:>4} per batch: {mib_plain / seconds:7.1f} MB, "
            f"{size:.1f} MiB of files become {cleaned.bytes_written / MIB:.1f}"
        )


def fill(path: str, mib: int, codec: Codec, records_per_batch: int) -> CleaningJob:
    """A log of `mib` MiB before compression, in which every key is there about twice."""
    directory = LogDirectory(
        path, SystemFiles(), cluster_id="benchmark", node_id=1, config_of=lambda _: CONFIG, now_ms=NOW_MS
    )
    log = directory.create(TopicPartition("t", 0), TopicId(bytes(range(16))), CONFIG, NOW_MS)
    count = mib * MIB // 110
    rng = random.Random(1)
    for _ in range(0, count, records_per_batch):
        records = [
            Record(number, NOW_MS, b"key-%08d" % rng.randrange(count // 2), b"value " * 14)
            for number in range(records_per_batch)
        ]
        data = memoryview(build_batch(records, codec=codec))
        log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
    log.roll(NOW_MS)
    flusher = Flusher()
    flusher.mark_dirty(log)
    if (everything := flusher.next_round()) is not None:
        everything.run()
        flusher.finish(everything)
    job = make_job(find_cleanable(log, None, log.synced_offset, NOW_MS), NOW_MS, RESOURCES)
    directory.close()
    return job


# -- latency -----------------------------------------------------------------------------------------------


def show_latencies(folder: str, options: argparse.Namespace) -> None:
    """acks=1 shows what the cleaner takes of the processor, acks=all also what it takes of the disk."""
    job = fill(os.path.join(folder, "beside"), options.mib, Codec.NONE, 150)
    latencies: dict[tuple[str, int], list[float]] = {(mode, acks): [] for mode in MODES for acks in ACKS}
    passes = dict.fromkeys(MODES, 0)
    with serving(os.path.join(folder, "broker")) as address:
        Peer(address).call(apis.CREATE_TOPICS, 5, CreateTopicsRequest([CreatableTopic("live", 1, 1)]))
        measure(address, options.rate, 1, 1)  # warm-up
        for _ in range(options.rounds):
            for mode in MODES:
                with cleaning(mode, job) as count:
                    for acks in ACKS:
                        latencies[mode, acks] += measure(address, options.rate, options.seconds, acks)
                passes[mode] += count[0]
    size = sum(segment.size for segment in job.segments) / MIB
    for acks in ACKS:
        print(f"\nproduce, acks={acks}, {options.rate}/s, ms; beside a cleaner in ...")
        print(f"{'':<12}{'p50':>8}{'p99':>8}{'p99.9':>8}{'max':>8}   MB/s cleaned")
        for mode in MODES:
            found = sorted(latencies[mode, acks])
            figures = "".join(f"{quantile(found, share):8.2f}" for share in (0.5, 0.99, 0.999, 1))
            rate = passes[mode] * size / options.seconds / options.rounds / len(ACKS)
            print(f"{mode:<12}{figures}   {rate:.0f}")


@contextmanager
def serving(path: str) -> Iterator[str]:
    """A broker in a thread of this process, so that a cleaner can be put beside it; its client is outside."""
    settings = [
        f"log.dirs={path}/log",
        "listeners=PLAINTEXT://127.0.0.1:0",
        f"ottla.coordination.dir={path}/znodes",
    ]
    broker = Broker(load_settings(None, settings))
    broker.start()
    owner = threading.Thread(target=broker.run)
    owner.start()
    try:
        yield f"127.0.0.1:{broker.listeners[0].port}"
    finally:
        broker.ask_to_stop()
        owner.join()


@contextmanager
def busy(count: int) -> Iterator[None]:
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextmanager
def cleaning(mode: str, job: CleaningJob) -> Iterator[list[int]]:
    """Passes over the same log, one after the other; nothing is swapped in."""
    count = [0]
    if mode == "alone":
        yield count
        return
    stop = threading.Event()
    work = in_a_process if mode == "a process" else in_a_thread
    thread = threading.Thread(target=work, args=(job, stop, count))
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def in_a_process(job: CleaningJob, stop: threading.Event, count: list[int]) -> None:
    process = CleanerProcess()
    while not stop.is_set():
        process.submit(job)
        while isinstance(process.next_report(), CleanedGroup) and not stop.is_set():
            pass
        count[0] += not stop.is_set()
    process.end()


class _Stopped(Exception):
    pass


def in_a_thread(job: CleaningJob, stop: threading.Event, count: list[int]) -> None:
    def throttle(size: int) -> None:
        if stop.is_set():
            raise _Stopped

    with contextlib.suppress(_Stopped):
        while True:
            Cleaner(SystemFiles(), job, throttle, lambda group: None).run()
            count[0] += 1


def measure(address: str, rate: int, seconds: float, acks: int) -> list[float]:
    """In a process of its own; milliseconds of each request, from when it should have left."""
    reading, writing = os.pipe()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", __spec__.name, "client", address, str(rate), str(seconds), str(acks)],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, writing, 3)],
    )
    os.close(writing)
    with os.fdopen(reading) as answers:
        latencies = [float(line) for line in answers]
    os.waitpid(pid, 0)
    return latencies


def client(address: str, rate: int, seconds: float, acks: int) -> None:
    peer = Peer(address)
    batch = build_batch([Record(0, int(time.time() * 1000), b"k", b"x" * 100)])
    data = [TopicProduceData("live", partition_data=[PartitionProduceData(0, batch)])]
    latencies = []
    began = time.perf_counter()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        while (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        peer.call(apis.PRODUCE, 9, ProduceRequest(None, acks, 30_000, data))
        latencies.append((time.perf_counter() - due) * 1000)
    with os.fdopen(3, "w") as answers:
        answers.writelines(f"{each}\n" for each in latencies)


if __name__ == "__main__":
    if sys.argv[1:2] == ["client"]:
        client(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
