"""ottla bench: numbers that are plausible, a topic that is gone afterwards, and wrong use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.program import Program
from compat.broker import unique_name
from ottla.cli.latencies import Latencies, drawn


@pytest.mark.parametrize("run", ["produce", "consume", "e2e"])
def test_every_run_counts_what_it_did_and_leaves_no_topic(client: Program, run: str) -> None:
    result = client.ok("bench", run, "-n", "200", "-s", "50", "-o", "json").json
    assert (result["records"], result["bytes"]) == (200, 10_000)
    assert result["records_per_second"] > 0
    if run != "consume":
        latency = result["latency_ms"]
        assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["max"]
    assert "ottla-bench" not in client.ok("topic", "ls").out


def test_people_get_percentiles_and_a_histogram(client: Program) -> None:
    out = client.ok("bench", "e2e", "-n", "50").out
    assert "p99.9" in out
    assert "█" in out


def test_a_named_topic_is_kept(client: Program) -> None:
    topic = unique_name("bench")
    client.ok("topic", "create", topic)
    client.ok("bench", "produce", "-n", "100", "--topic", topic)
    assert client.ok("bench", "consume", "--topic", topic, "-o", "json").json["records"] == 100
    client.ok("topic", "show", topic)


def test_a_plot_is_a_png(client: Program, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "result.png"
    client.ok("bench", "e2e", "-n", "20", "--plot", str(file))
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        ((), 2, "required: VERB"),
        (("produce", "-n", "0"), 2, "--records must be 1 or more"),
        (("produce", "--topic", "nowhere"), 4, "there is no topic 'nowhere'"),
        (("produce", "-X", "linger=1", "-n", "1"), 2, "did you mean linger.ms?"),
        (("e2e", "-b", "127.0.0.1:1"), 3, "no broker at"),
    ],
)
def test_wrong_use_names_the_cause(
    client: Program, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    assert cause in client.fails(code, "bench", *arguments)


def test_percentiles_are_exact_and_the_histogram_holds_everything() -> None:
    latencies = Latencies()
    assert latencies.summary_ms() == {}
    assert latencies.histogram() == []
    for number in range(1, 1001):
        latencies.add(number / 1000)
    summary = latencies.summary_ms()
    assert summary["min"] == pytest.approx(1)
    assert summary["p50"] == pytest.approx(501)
    assert summary["p99"] == pytest.approx(991)
    assert summary["max"] == pytest.approx(1000)
    histogram = latencies.histogram()
    assert sum(count for _, count in histogram) == 1000
    lines = drawn(histogram)
    assert len(lines) == len(histogram)
    assert max(line.count("█") for line in lines) == 40
