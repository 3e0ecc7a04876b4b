"""The runs of `ottla bench`. Each shows a live line, and ends early but whole on Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from functools import partial
from typing import TYPE_CHECKING

from ottla.cli.bench_report import Result
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.latencies import Latencies
from ottla.cli.produce import Pace
from ottla.cli.progress import Waiting
from ottla.cli.sizes import format_bytes

if TYPE_CHECKING:
    from ottla.client.accumulator import Delivery
    from ottla.client.errors import ClientError

_POLL_SECONDS = 1.0
_E2E_SECONDS_MAX = 30.0  # for one record; then something is wrong


class Meter:
    """Counts records as they are done, second by second."""

    def __init__(self, what: str, wanted: int) -> None:
        self.records = 0
        self.bytes = 0
        self.began = time.perf_counter()
        self.per_second: list[int] = []
        self._what = what
        self._wanted = wanted

    def count(self, records: int, size: int) -> None:
        second = int(time.perf_counter() - self.began)
        self.per_second.extend([0] * (second + 1 - len(self.per_second)))
        self.per_second[second] += records
        self.records += records
        self.bytes += size

    def line(self) -> str:
        seconds = max(time.perf_counter() - self.began, 1e-9)
        return (
            f"{self._what} {self.records / self._wanted:4.0%}  {self.records / seconds:,.0f} records/s  "
            f"{format_bytes(self.bytes / seconds)}/s"
        )

    def result(self, title: str, latencies: Latencies | None = None, latency_of: str = "") -> Result:
        if not self.records:
            raise CommandFailed("nothing was measured", exit_code=ExitCode.INTERRUPTED)
        seconds = time.perf_counter() - self.began
        return Result(
            title, self.records, self.bytes, seconds, latencies or Latencies(), latency_of, self.per_second
        )


def run_produce(bootstrap: str, topic: str, options: argparse.Namespace) -> Result:
    latencies = Latencies()
    meter = _fill(bootstrap, topic, options, dict(options.config), latencies)
    return meter.result(
        f"produce {options.size} B, acks={options.acks}", latencies, "from send to acknowledgement"
    )


def _fill(
    bootstrap: str,
    topic: str,
    options: argparse.Namespace,
    config: dict[str, str],
    latencies: Latencies | None = None,
) -> Meter:
    from ottla.client.producer import Producer

    settings = {"acks": options.acks, "compression.type": options.compression, **config}
    values = _values(options.size)
    pace = Pace(options.rate)
    failed: list[ClientError] = []
    with Producer(bootstrap, **settings) as producer:
        producer.partition_count(topic)  # known before the clock runs
        meter = Meter("producing", options.records)

        def taken(sent_at: float, delivery: Delivery | None, error: ClientError | None) -> None:
            if error is not None:
                failed.append(error)
            else:
                meter.count(1, options.size)
                if latencies is not None:
                    latencies.add(time.perf_counter() - sent_at)

        with Waiting("producing") as waiting, contextlib.suppress(KeyboardInterrupt):
            for number in range(options.records):
                pace.wait()
                sent_at = time.perf_counter()
                producer.send(
                    topic,
                    values[number % len(values)],
                    on_delivery=partial(taken, sent_at),
                )
                waiting.tick(meter.line())
                if failed:
                    raise failed[0]
            producer.flush()
        producer.close()
    if failed:
        raise failed[0]
    return meter


def _values(size: int) -> list[bytes]:
    """Letters that compress as text does, not all the same."""
    source = random.Random(7)
    words = [
        bytes(source.choices(b"abcdefghijklmnopqrstuvwxyz", k=source.randrange(3, 9))) for _ in range(200)
    ]
    values = []
    for _ in range(64):
        text = b" ".join(source.choices(words, k=size // 4 + 1))
        values.append(text[:size].ljust(size, b"."))
    return values


def run_consume(bootstrap: str, topic: str, options: argparse.Namespace) -> Result:
    """Reads what is there; a topic of our own is filled first."""
    from ottla.client.reading import read

    if options.topic is None:
        _fill(bootstrap, topic, options, {})
    with read(bootstrap, topic, "start", "end", **dict(options.config)) as reading:
        meter = Meter("consuming", options.records)
        with Waiting("consuming") as waiting, contextlib.suppress(KeyboardInterrupt):
            while meter.records < options.records and not reading.is_over:
                records = reading.poll(_POLL_SECONDS)
                meter.count(len(records), sum(len(record.value or b"") for record in records))
                waiting.tick(meter.line())
        return meter.result("consume")


def run_e2e(bootstrap: str, topic: str, options: argparse.Namespace) -> Result:
    from ottla.client.producer import Producer
    from ottla.client.reading import read

    latencies, pace, values = Latencies(), Pace(options.rate), _values(options.size)
    settings = {"acks": options.acks, "linger.ms": "0", "compression.type": options.compression}
    settings |= dict(options.config)
    with Producer(bootstrap, **settings) as producer, read(bootstrap, topic, "end", None) as reading:
        reading.poll(0)  # finds its place before the first record is sent
        meter = Meter("sending", options.records)
        with Waiting("sending") as waiting, contextlib.suppress(KeyboardInterrupt):
            for number in range(options.records):
                pace.wait()
                began = time.perf_counter()
                producer.send(topic, values[number % len(values)])
                while not reading.poll(_POLL_SECONDS):
                    if time.perf_counter() - began > _E2E_SECONDS_MAX:
                        raise CommandFailed(
                            f"a record did not arrive within {_E2E_SECONDS_MAX:.0f} s",
                            "look at the broker's log",
                        )
                latencies.add(time.perf_counter() - began)
                meter.count(1, options.size)
                waiting.tick(meter.line())
        return meter.result(
            f"end to end {options.size} B, acks={options.acks}", latencies, "from send to having it read"
        )
