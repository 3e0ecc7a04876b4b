"""What a benchmark found: percentiles and a histogram for people, the same numbers for programs."""

from __future__ import annotations

from ottla.cli.latencies import Latencies, drawn
from ottla.cli.output import Row, print_facts, print_rows, styled
from ottla.cli.sizes import format_bytes
from ottla.model.values import dataclass, field


@dataclass(slots=True)
class Result:
    title: str  # what was done, in words
    records: int
    bytes: int  # of keys and values
    seconds: float
    latencies: Latencies = field(default_factory=Latencies)
    latency_of: str = ""  # what a latency is, in words
    per_second: list[int] = field(default_factory=list)  # records in each second of the run


def print_result(result: Result, form: str) -> None:
    if form == "table":
        _print_for_people(result)
        return
    facts: Row = {
        "run": result.title,
        "records": result.records,
        "bytes": result.bytes,
        "seconds": round(result.seconds, 6),
        "records_per_second": round(result.records / result.seconds, 1),
        "bytes_per_second": round(result.bytes / result.seconds, 1),
        "latency_ms": {name: round(value, 4) for name, value in result.latencies.summary_ms().items()},
    }
    if form == "json":
        print_facts(facts, form)
    else:
        print_rows([facts], form)


def _print_for_people(result: Result) -> None:
    print(styled(result.title, "bold"))
    print_facts(
        {
            "records": f"{result.records:,} in {result.seconds:.2f} s",
            "rate": f"{result.records / result.seconds:,.0f} records/s",
            "data": f"{format_bytes(result.bytes)}, {format_bytes(result.bytes / result.seconds)}/s",
        },
        "table",
    )
    summary = result.latencies.summary_ms()
    if not summary:
        return
    print(f"\n{styled(f'latency: {result.latency_of}', 'bold')}")
    print("  ".join(f"{name} {value:.2f} ms" for name, value in summary.items()))
    for line in drawn(result.latencies.histogram()):
        print(line)
