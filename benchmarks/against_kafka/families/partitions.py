"""A topic of many partitions: until it can be used, what it costs, how fast it is, how it starts again."""

from __future__ import annotations

import time

from benchmarks import topics
from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.processes import resident_mib
from benchmarks.questions import produce
from benchmarks.raw_load import Figures, Shape

_TOPIC = "wide"
_SPREAD = {"acks": "all", "linger.ms": 5}


def _trial(count: int, once: float | None = None, spread: float | None = None) -> Trial:
    """`once` is promised of creating and restarting, `spread` of writing to all of them."""

    def run(bench: Bench) -> Figures:
        bench.broker.start()
        bench.warm_up()
        create_seconds = _create(bench, count)
        idle_cpu = bench.idle_cpu()
        to_one = bench.ask(produce(100), _TOPIC, Shape(64))
        to_all = bench.clients.rdkafka.produce(
            bench.address, _TOPIC, 100, _SPREAD, seconds=bench.scale.seconds, partitions=count
        )
        return {
            "create_seconds": create_seconds,
            "idle_cpu_percent": 100 * idle_cpu,
            "to_one": to_one["per_second"],
            "to_all": to_all["per_second"],
            "memory_mib": resident_mib(bench.broker.pid),
            "restart_seconds": _restart(bench, count),
        }

    what = f"{count:,} partition{'s' if count > 1 else ''}"
    rows = (
        Row(f"{what}: create to usable", "s", "create_seconds", True, once),
        Row(f"{what}: idle CPU", "%", "idle_cpu_percent", True),
        Row(f"{what}: 1 x 100 B to one, 64 connections", "/s", "to_one"),
        Row(f"{what}: librdkafka 100 B to all", "/s", "to_all", target=spread),
        Row(f"{what}: memory", "MiB", "memory_mib", True),
        Row(f"{what}: restart to usable", "s", "restart_seconds", True, once),
    )
    return Trial(rows, run, fresh=True)


def _create(bench: Bench, count: int) -> float:
    peer = bench.peer()
    began = time.perf_counter()
    topics.create(peer, _TOPIC, count)
    topics.await_usable(peer, _TOPIC, count)
    elapsed = time.perf_counter() - began
    peer.socket.close()
    return elapsed


def _restart(bench: Bench, count: int) -> float:
    """From its start on, after a clean stop."""
    bench.broker.stop()
    began = time.perf_counter()
    bench.broker.start()
    topics.await_usable(bench.peer(), _TOPIC, count)
    return time.perf_counter() - began


TRIALS = (_trial(1), _trial(100), _trial(1_000, spread=5), _trial(10_000, once=0.2, spread=10))
