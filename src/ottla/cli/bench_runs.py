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
from ottla.cli.pace import Pace
from ottla.cli.progress import Waiting, watched
from ottla.cli.sizes import format_bytes
from ottla.client.access import Access

if TYPE_CHECKING:
    from ottla.client.accumulator import Delivery
    from ottla.client.errors import ClientError
    from ottla.client.producer import Producer

_POLL_SECONDS = 1.0
_SAMPLED_ONE_IN = 16  # timing every record would halve the rate that is measured
_E2E_SECONDS_MAX = 30.0  # for one record; then something is wrong


class Meter:
    """Counts records as they are done. `records` and `bytes` are raised by whoever sees one done."""

    def __init__(self, what: str, wanted: int) -> None:
        self.records = 0
        self.bytes = 0
        self.began = time.perf_counter()
        self._what = what
        self._wanted = wanted
        self._per_second: list[int] = []
        self._second_ends = self.began + 1
        self._counted = 0  # of `records`, what is in `_per_second`
        self._seen = 0  # of `records`, at the last look

    def tick(self, now: float) -> None:
        """To be called often: closes seconds that are over."""
        while now >= self._second_ends:
            self._per_second.append(self.records - self._counted)
            self._counted = self.records
            self._second_ends += 1

    def has_grown(self) -> bool:
        """Whether records were done since this was asked last."""
        before, self._seen = self._seen, self.records
        return self._seen > before

    def line(self) -> str:
        seconds = max(time.perf_counter() - self.began, 1e-9)
        return (
            f"{self._what} {self.records / self._wanted:4.0%}  {self.records / seconds:,.0f} records/s  "
            f"{format_bytes(self.bytes / seconds)}/s"
        )

    def result(self, title: str, latencies: Latencies | None = None, latency_of: str = "") -> Result:
        if not self.records:
            raise CommandFailed("nothing was measured", exit_code=ExitCode.INTERRUPTED)
        ended = time.perf_counter()
        self.tick(ended)
        return Result(
            title,
            self.records,
            self.bytes,
            ended - self.began,
            latencies or Latencies(),
            latency_of,
            self._per_second,
        )


def run_produce(access: Access, topic: str, options: argparse.Namespace) -> Result:
    latencies = Latencies()
    meter = _fill(access, topic, options, latencies)
    every = "" if options.rate else f", every {_SAMPLED_ONE_IN}th record"
    return meter.result(
        f"produce {options.size} B, acks={options.acks}", latencies, f"from send to acknowledgement{every}"
    )


def _fill(access: Access, topic: str, options: argparse.Namespace, latencies: Latencies) -> Meter:
    from ottla.client.producer import Producer

    settings = {"acks": options.acks, "compression.type": options.compression, **access.settings}
    values, pace = _values(options.size), Pace(options.rate)
    sampled_one_in = 1 if options.rate else _SAMPLED_ONE_IN
    failed: list[ClientError] = []

    def done(_: Delivery | None, error: ClientError | None) -> None:
        if error is None:
            meter.records += 1
            meter.bytes += options.size
        else:
            failed.append(error)

    def timed(sent_at: float, delivery: Delivery | None, error: ClientError | None) -> None:
        latencies.add(time.perf_counter() - sent_at)
        done(delivery, error)

    with Producer(access.bootstrap, **settings) as producer:
        producer.partition_count(topic)  # known before the clock runs
        meter = Meter("producing", options.records)
        with Waiting("producing") as waiting, watched(lambda: _look(producer, waiting, meter)):
            with contextlib.suppress(KeyboardInterrupt):
                for number in range(options.records):
                    pace.wait()
                    now = time.perf_counter()
                    on_delivery = done if number % sampled_one_in else partial(timed, now)
                    producer.send(topic, values[number % len(values)], on_delivery=on_delivery)
                    meter.tick(now)
                    if failed:
                        break
            producer.flush()
    if failed:
        raise failed[0]
    return meter


def _look(producer: Producer, waiting: Waiting, meter: Meter) -> None:
    waiting.tick(meter.line)
    waiting.explain(None if meter.has_grown() else producer.problem)


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


def run_consume(access: Access, topic: str, options: argparse.Namespace) -> Result:
    """Reads what is there; a topic of our own is filled first."""
    from ottla.client.reading import read
    from ottla.client.settings import common_of

    if options.topic is None:
        _fill(Access(access.bootstrap, common_of(access.settings)), topic, options, Latencies())
    with read(access.bootstrap, topic, "start", "end", partitions=None, **access.settings) as reading:
        meter = Meter("consuming", options.records)
        with Waiting("consuming") as waiting, contextlib.suppress(KeyboardInterrupt):
            while meter.records < options.records and not reading.is_over:
                records = reading.poll(_POLL_SECONDS)
                meter.records += len(records)
                meter.bytes += sum(len(record.value or b"") for record in records)
                meter.tick(time.perf_counter())
                waiting.tick(meter.line)
                waiting.explain(None if records else reading.problem)
        return meter.result("consume")


def run_e2e(access: Access, topic: str, options: argparse.Namespace) -> Result:
    from ottla.client.producer import Producer
    from ottla.client.reading import read
    from ottla.client.settings import CONSUMER_SETTINGS, PRODUCER_SETTINGS

    latencies, pace, values = Latencies(), Pace(options.rate), _values(options.size)
    settings = {"acks": options.acks, "linger.ms": "0", "compression.type": options.compression}
    reads = {name: value for name, value in access.settings.items() if name in CONSUMER_SETTINGS}
    # What neither of them has goes to the producer, which refuses it.
    writes = {
        name: value
        for name, value in access.settings.items()
        if name in PRODUCER_SETTINGS or name not in CONSUMER_SETTINGS
    }
    with (
        Producer(access.bootstrap, **{**settings, **writes}) as producer,
        read(access.bootstrap, topic, "end", None, partitions=None, **reads) as reading,
    ):
        reading.poll(0)  # finds its place before the first record is sent
        meter = Meter("sending", options.records)
        with Waiting("sending") as waiting, contextlib.suppress(KeyboardInterrupt):
            for number in range(options.records):
                pace.wait()
                began = time.perf_counter()
                producer.send(topic, values[number % len(values)])
                while not reading.poll(_POLL_SECONDS):
                    problem = producer.problem or reading.problem
                    waiting.explain(problem)
                    if time.perf_counter() - began > _E2E_SECONDS_MAX:
                        raise _did_not_arrive(problem)
                waiting.explain(None)
                now = time.perf_counter()
                latencies.add(now - began)
                meter.records += 1
                meter.bytes += options.size
                meter.tick(now)
                waiting.tick(meter.line)
        return meter.result(
            f"end to end {options.size} B, acks={options.acks}", latencies, "from send to having it read"
        )


def _did_not_arrive(problem: ClientError | None) -> CommandFailed:
    text = f"a record did not arrive within {_E2E_SECONDS_MAX:.0f} s"
    if problem is None:
        return CommandFailed(text, "look at the broker's log")
    return CommandFailed(f"{text}: {problem.text}", problem.cure)
