"""What users of librdkafka see: records per second through its queues, one setting changed at a time."""

from __future__ import annotations

from benchmarks import topics
from benchmarks.against_kafka.bench import Bench
from benchmarks.against_kafka.rows import Row, Trial
from benchmarks.memory import fetch_memory
from benchmarks.questions import MIB
from benchmarks.raw_load import Figures
from benchmarks.rdkafka_load import Properties

WRITER: Properties = {"acks": "all", "linger.ms": 5, "compression.type": "none"}
READER: Properties = {"queued.min.messages": 1_000_000, "fetch.wait.max.ms": 100}  # reads well ahead
_SHORT = {
    "acks": "acks",
    "linger.ms": "linger",
    "compression.type": "compression",
    "enable.idempotence": "idempotence",
}

_PER_SECOND_MAX = 2_000_000  # records, if they are not tiny


def _produce(
    value_bytes: int, changed: Properties, target: float | None = None, *, quick: bool = False
) -> Trial:
    def run(bench: Bench) -> Figures:
        with bench.topic() as topic:
            properties = {**WRITER, **changed}
            fetch_memory(value_bytes * _PER_SECOND_MAX // MIB)
            return bench.clients.rdkafka.produce(
                bench.address, topic, value_bytes, properties, seconds=bench.scale.seconds
            )

    parts = [f"{_SHORT[name]} {value}" for name, value in changed.items()]
    name = ", ".join([f"librdkafka produce {value_bytes:,} B", *parts])
    return Trial((Row(name, "/s", "per_second", target=target),), run, quick)


def _consume(
    value_bytes: int, target: float | None = None, *, quick: bool = False, cold: bool = False
) -> Trial:
    def run(bench: Bench) -> Figures:
        count = bench.scale.consumed_mib * MIB // value_bytes
        rdkafka = bench.clients.rdkafka
        with bench.topic() as topic:
            rdkafka.produce(bench.address, topic, value_bytes, WRITER, count=count)
            if cold:
                topics.drop_pages(bench.broker.folder, topic)
            return rdkafka.consume(bench.address, topic, count, READER)

    name = f"librdkafka consume {value_bytes:,} B" + (", from disk" if cold else "")
    return Trial((Row(name, "/s", "per_second", target=target),), run, quick, writes=False)


def _writers(value_bytes: int, target: float | None = None, *, quick: bool = False) -> tuple[Trial, ...]:
    return (
        _produce(value_bytes, {}, target, quick=quick),
        _produce(value_bytes, {"acks": 1}, target),
        _produce(value_bytes, {"linger.ms": 0}),
        _produce(value_bytes, {"linger.ms": 50}),
        _produce(value_bytes, {"compression.type": "lz4"}),
        _produce(value_bytes, {"compression.type": "zstd"}),
        _produce(value_bytes, {"enable.idempotence": "true"}),
    )


TRIALS = (
    *_writers(100),
    *_writers(1024, 1.5, quick=True),
    _consume(100),
    _consume(1024, 1.3, quick=True),
    _consume(1024, cold=True),
)
