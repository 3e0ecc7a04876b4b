"""What a row of the table is, and what is compared with what. Data only; the families declare the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.against_kafka.brokers import ApacheKafka, Broker, Ottla

if TYPE_CHECKING:
    from benchmarks.against_kafka.bench import Bench

_FLUSH = "log.flush.interval.messages"
_NEVER = str(2**63 - 1)  # Kafka's default: the operating system writes when it likes


@dataclass(frozen=True)
class Setup:
    """A broker with its durability."""

    key: str
    broker: type[Broker]
    flush_messages: str | None = None  # None: as it comes

    @property
    def settings(self) -> dict[str, str]:
        # Files of a topic that is gone must not weigh on the next measurement.
        settings = {"log.segment.delete.delay.ms": "100"}
        return settings if self.flush_messages is None else {**settings, _FLUSH: self.flush_messages}


KAFKA = Setup("kafka", ApacheKafka)
KAFKA_FLUSHED = Setup("kafka-flushed", ApacheKafka, "1")
OTTLA = Setup("ottla", Ottla)
OTTLA_UNFLUSHED = Setup("ottla-unflushed", Ottla, _NEVER)


@dataclass(frozen=True)
class Comparison:
    key: str
    title: str
    ours: Setup
    theirs: Setup


UNFLUSHED = Comparison(
    "unflushed",
    f"Neither waits for the disk: Ottla with {_FLUSH} at Kafka's default, Kafka as it comes",
    OTTLA_UNFLUSHED,
    KAFKA,
)
DURABLE = Comparison(
    "durable",
    f"Both wait for the disk: Ottla as it comes, Kafka with {_FLUSH}=1",
    OTTLA,
    KAFKA_FLUSHED,
)
UNLIKE = Comparison(
    "unlike",
    "NOT like with like: Ottla as it comes waits for the disk, Kafka as it comes does not",
    OTTLA,
    KAFKA,
)
COMPARISONS = (UNFLUSHED, DURABLE, UNLIKE)
# In the order in which a round starts them: those that are compared follow each other.
SETUPS = (KAFKA, OTTLA_UNFLUSHED, OTTLA, KAFKA_FLUSHED)


@dataclass(frozen=True)
class Row:
    """One figure of a trial, as a line of the table."""

    name: str
    unit: str
    figure: str  # its name in what the trial returns
    lower_is_better: bool = False
    target: float | None = None  # promised: our figure divided by Kafka's, where neither waits for the disk
    durable_target: float | None = None  # promised where both wait


@dataclass(frozen=True)
class Trial:
    """One measurement, which gives all its rows at once."""

    rows: tuple[Row, ...]
    run: Callable[[Bench], dict[str, float]]
    quick: bool = False  # one of the main ones
    writes: bool = True  # False: the disk has no part in it, so it is measured where neither waits only
    fresh: bool = False  # on a broker of its own, which it starts itself, once in a round
    once: bool = False  # in the first round only, because it takes minutes

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return COMPARISONS if self.writes else (UNFLUSHED,)

    def concerns(self, setup: Setup) -> bool:
        return any(setup in (each.ours, each.theirs) for each in self.comparisons)

    def is_due(self, setup: Setup, round_number: int) -> bool:
        return self.concerns(setup) and not (self.once and round_number > 0)


@dataclass(frozen=True)
class Scale:
    """How long and how often."""

    name: str
    seconds: float  # of one run
    runs: int  # of each trial in a round
    rounds: int  # each starts every broker anew
    warm_up_seconds: float
    consumed_mib: int  # by a consumer, in one run
    short_warm_up_seconds: float  # of brokers that are started for one trial
    cold_mib: int = 128  # read from the disk, in one run


FULL = Scale("full", 1, 3, 1, 30, 256, 15)
QUICK = Scale("quick", 1, 3, 1, 8, 128, 8)
