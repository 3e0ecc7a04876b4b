"""Coordination and controller: changes per second, cost of a topic, recovery, the longest stall.

Usage: python benchmarks/coordination.py [directory on the disk to measure]
The sync figures depend on the disk: `raw` is the same bytes appended and synced without us.
"""

from __future__ import annotations

import gc
import os
import shutil
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

from ottla.controller.controller import Controller
from ottla.controller.topics import TopicSpec
from ottla.controller.znode_formats import EndPoint
from ottla.coordination.client import LocalCoordination
from ottla.coordination.operations import Create, Multi, Operation, SetData
from ottla.coordination.snapshots import SLICE_NODES, SnapshotWriter
from ottla.coordination.znodes import Tree
from ottla.log.system_files import SystemFiles
from ottla.model.clock import SystemClock
from ottla.model.configs import BrokerConfig

DATA = bytes(100)  # of a znode, as in facts about ZooKeeper's own speed


def seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def in_memory() -> None:
    """Decide and apply, no log."""
    count = 50_000

    def run(operations: list[Operation]) -> None:
        for operation in operations:
            txn, _ = tree.decide(operation, 1, 0)
            assert txn is not None
            tree.apply(txn)

    tree = Tree()
    creates: list[Operation] = [Create(f"/{number}", DATA) for number in range(count)]
    sets: list[Operation] = [SetData(f"/{number}", DATA) for number in range(count)]
    print(f"in memory: create {count / seconds(lambda: run(creates)):>10,.0f}/s")
    print(f"in memory: set    {count / seconds(lambda: run(sets)):>10,.0f}/s")


def with_the_disk(directory: str) -> None:
    """Rounds one after the other, with as many operations each as there are clients that wait for one."""
    for clients in (1, 16, 64, 1_000):
        coordination = LocalCoordination(
            SystemFiles(), os.path.join(directory, f"sync-{clients}"), SystemClock()
        )
        coordination.submit(Create("/a", DATA), lambda _: None)
        coordination.sync()
        done = 0

        def count(_: object) -> None:
            nonlocal done
            done += 1

        rounds, start = 0, time.perf_counter()
        while time.perf_counter() - start < 1.5:
            for _ in range(clients):
                coordination.submit(SetData("/a", DATA), count)
            coordination.sync()
            rounds += 1
        spent = time.perf_counter() - start
        coordination.close()
        raw = raw_syncs(directory, 190 * clients)
        print(
            f"{clients:>5} waiting: {done / spent:>8,.0f} changes/s, {rounds / spent:>6,.0f} syncs/s"
            f" (raw: {raw:,.0f} syncs/s)"
        )


def raw_syncs(directory: str, size: int) -> float:
    handle = SystemFiles().create(os.path.join(directory, f"raw-{size}"))
    data, count, start = [bytes(size)], 0, time.perf_counter()
    while time.perf_counter() - start < 0.5:
        handle.append(data)
        handle.sync()
        count += 1
    return count / (time.perf_counter() - start)


def topics(directory: str) -> None:
    for partitions, repeats in ((1, 1_000), (1_000, 5), (10_000, 2)):
        path = os.path.join(directory, f"topics-{partitions}")
        coordination = LocalCoordination(SystemFiles(), path, SystemClock())
        controller = Controller(coordination, SystemClock(), BrokerConfig(), 1)
        controller.start(lambda _: None)
        coordination.sync()
        controller.register_broker([EndPoint("PLAINTEXT", "localhost", 9092)], None, lambda _: None)
        coordination.sync()
        owner = total = 0.0
        for number in range(repeats):
            gc.collect()
            start = time.perf_counter()
            controller.create_topics([TopicSpec(f"topic-{number}", partitions)], False, lambda _: None)
            owner += time.perf_counter() - start
            coordination.sync()
            total += time.perf_counter() - start
        raised = seconds(partial(controller.raise_leader_epochs, lambda _: None))
        coordination.sync()
        started = seconds(partial(LocalCoordination, SystemFiles(), path, SystemClock()))
        print(
            f"topic of {partitions:>6} partitions: {owner / repeats * 1e3:8.2f} ms of the owner's time, "
            f"{total / repeats * 1e3:8.2f} ms until durable; with {repeats * partitions:,} partitions: "
            f"raise epochs {raised * 1e3:,.0f} ms, recover {started * 1e3:,.0f} ms"
        )


def snapshot() -> None:
    tracemalloc.start()
    tree = Tree()
    steps = [Create(f"/{number}", DATA) for number in range(200_000)]
    before = tracemalloc.get_traced_memory()[0]
    txn, _ = tree.decide(Multi(steps), 1, 0)
    assert txn is not None
    tree.apply(txn)
    del txn
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    writer = SnapshotWriter(tree, 0)
    slices, size = [], 0
    while not writer.finished:
        start = time.perf_counter()
        size += len(writer.next_chunk())
        slices.append(time.perf_counter() - start)
    print(
        f"snapshot of 200,000 znodes: {size / 1e6:.0f} MB in {len(slices)} slices of {SLICE_NODES}, "
        f"{statistics.median(slices) * 1e3:.1f} ms each, the longest {max(slices) * 1e3:.1f}; "
        f"{used / 200_000:.0f} bytes of memory a znode"
    )


def main() -> None:
    directory = tempfile.mkdtemp(prefix="ottla-", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        in_memory()
        with_the_disk(directory)
        topics(directory)
        snapshot()
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
