"""A topic of many partitions: until it can be used, what it costs, how fast it is, how it starts again."""

from __future__ import annotations

import statistics
import time

from benchmarks import topics
from benchmarks.against_kafka.bench import OF_A_RUN, Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.processes import cpu_seconds, resident_mib
from benchmarks.questions import produce, produce_to_all
from benchmarks.raw_load import Figures, Shape
from benchmarks.rdkafka_load import RdkafkaLoad

from ottla.protocol import apis

MANY = 10_000
_TOPIC = "wide"
_AT_ONCE_MAX = 1_000  # partitions of one request: a Kafka that syncs each would take minutes for more
_AT_ONCE_TIMES = 7
_AT_ONCE_SECONDS_MAX = 120
_SPREAD = {"acks": "all", "linger.ms": 5}
_SPREAD_RECORDS = 1_000_000  # a hundred for each of ten thousand: all of them have their turn
_SPREAD_SECONDS_MAX = 20


def _trial(count: int, once: float | None = None, spread: float | None = None) -> Trial:
    """`once` is promised of creating and restarting, `spread` of writing to all of them."""

    def run(bench: Bench) -> Figures:
        bench.broker.start()
        bench.warm_up(bench.scale.short_warm_up_seconds)
        create_seconds = _create(bench, count)
        idle_cpu = bench.idle_cpu()
        to_one = bench.ask(produce(100), _TOPIC, Shape(64))
        spent, began = cpu_seconds(bench.broker.pid), time.perf_counter()
        to_all = write_to_all_in_turn(bench.clients.rdkafka, bench.address, _TOPIC, count)
        broker_busy = (cpu_seconds(bench.broker.pid) - spent) / (time.perf_counter() - began)
        at_once = {}
        if count <= _AT_ONCE_MAX:
            at_once["at_once_ms"] = _write_to_all_at_once(bench, count) * 1e3
        return {
            **at_once,
            "create_seconds": create_seconds,
            "idle_cpu_percent": 100 * idle_cpu,
            **_of_a_run("to_one", to_one),
            **_of_a_run("to_all", to_all),
            "to_all_broker_busy": broker_busy,
            "memory_mib": resident_mib(bench.broker.pid),
            "restart_seconds": _restart(bench, count),
        }

    what = f"{count:,} partition{'s' if count > 1 else ''}"
    rows: tuple[Row, ...] = (
        Row(f"{what}: create to usable", "s", "create_seconds", True, once),
        Row(f"{what}: idle CPU", "%", "idle_cpu_percent", True),
        Row(f"{what}: 1 x 100 B to one, 64 connections", "/s", "to_one"),
        Row(f"{what}: librdkafka 100 B to all", "/s", "to_all", target=spread),
        Row(f"{what}: memory", "MiB", "memory_mib", True),
        Row(f"{what}: restart to usable", "s", "restart_seconds", True, once),
    )
    if count <= _AT_ONCE_MAX:
        # Where both wait for the disk this is a sync of as many files: one bounded round, or one by one.
        rows += (Row(f"{what}: one request to all, p50", "ms", "at_once_ms", True),)
    return Trial(rows, run, fresh=True, once=True)


def write_to_all_in_turn(rdkafka: RdkafkaLoad, address: str, topic: str, count: int) -> Figures:
    return rdkafka.produce(
        address, topic, 100, _SPREAD, seconds=_SPREAD_SECONDS_MAX, count=_SPREAD_RECORDS, partitions=count
    )


def _of_a_run(figure: str, told: Figures) -> Figures:
    return {figure: told["per_second"]} | {
        f"{figure}.{name}": told[name] for name in OF_A_RUN if name in told
    }


def _create(bench: Bench, count: int) -> float:
    peer = bench.peer()
    began = time.perf_counter()
    topics.create(peer, _TOPIC, count)
    topics.await_usable(peer, _TOPIC, count)
    elapsed = time.perf_counter() - began
    peer.socket.close()
    return elapsed


def _write_to_all_at_once(bench: Bench, count: int) -> float:
    """Seconds until one request with a record for each partition is answered, the median of some."""
    peer = bench.peer()
    peer.socket.settimeout(_AT_ONCE_SECONDS_MAX)
    request = produce_to_all(count).message(_TOPIC)
    times = []
    for _ in range(_AT_ONCE_TIMES):
        began = time.perf_counter()
        (answer,) = peer.call(apis.PRODUCE, 7, request).responses
        times.append(time.perf_counter() - began)
        assert not any(each.error_code for each in answer.partition_responses), answer
    peer.socket.close()
    return statistics.median(times)


def _restart(bench: Bench, count: int) -> float:
    """From its start on, after a clean stop."""
    bench.broker.stop()
    began = time.perf_counter()
    bench.broker.start()
    topics.await_usable(bench.peer(), _TOPIC, count)
    return time.perf_counter() - began


TRIALS = (_trial(1), _trial(100), _trial(1_000, spread=5), _trial(MANY, once=0.2, spread=10))
