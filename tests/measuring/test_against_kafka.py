"""What the comparison with Apache Kafka reckons: medians, ratios, the table, and what got slower."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from benchmarks import empty_broker
from benchmarks.against_kafka import plot, ratios, table
from benchmarks.against_kafka.families import TRIALS
from benchmarks.against_kafka.limits import Limit
from benchmarks.against_kafka.results import Line, Results, Samples
from benchmarks.against_kafka.rows import (
    COMPARISONS,
    DURABLE,
    KAFKA,
    KAFKA_FLUSHED,
    OTTLA,
    OTTLA_UNFLUSHED,
    SETUPS,
    UNFLUSHED,
    UNLIKE,
    Row,
    Trial,
)
from benchmarks.processes import cpu_seconds, family, on_core, resident_mib
from confluent_kafka import Consumer, Producer, TopicPartition

RATE = Row("writes", "/s", "rate", target=3, durable_target=20)
DELAY = Row("delay", "µs", "delay", lower_is_better=True, target=0.5)
WRITING = Trial((RATE, DELAY), lambda bench: {})
READING = Trial((Row("reads", "MB/s", "rate"),), lambda bench: {}, writes=False)


def results_of(ours: float = 300, theirs: float = 100) -> Results:
    results = Results("quick", {"measured": "now"})
    for setup in SETUPS:
        rate = ours if setup in (OTTLA, OTTLA_UNFLUSHED) else theirs
        for wobble in (0.9, 1, 1.1):
            results.add(setup, WRITING.rows, {"rate": rate * wobble, "delay": 1e4 / rate, "client_busy": 0.5})
    return results


def lines_of(results: Results) -> list[Line]:
    return results.lines((WRITING, READING), COMPARISONS)


def test_median_and_spread_are_those_of_all_runs() -> None:
    samples = Samples([10, 30, 20])
    assert samples.median == 20
    assert samples.spread == pytest.approx(0.5)
    assert Samples().median is None


def test_a_client_without_time_to_spare_is_told() -> None:
    assert Samples([1], client_busy=[0.97]).client_bound
    assert not Samples([1], client_busy=[0.4]).client_bound
    assert not Samples([1]).client_bound


def test_like_is_compared_with_like_and_the_rest_is_kept_apart() -> None:
    results = Results("quick", {})
    for figure, setup in enumerate((KAFKA, KAFKA_FLUSHED, OTTLA, OTTLA_UNFLUSHED), start=1):
        results.add(setup, (RATE,), {"rate": figure})
    lines = results.lines((WRITING,), COMPARISONS)
    ratios_of = {line.comparison: line.ratio for line in lines if line.row is RATE}
    assert ratios_of == {UNFLUSHED: 4 / 1, DURABLE: 3 / 2, UNLIKE: 3 / 1}


def test_a_ratio_is_ours_divided_by_theirs_and_better_is_above_one() -> None:
    rate, delay = lines_of(results_of())[:2]
    assert (rate.ratio, rate.times_better) == pytest.approx((3, 3))
    assert (delay.ratio, delay.times_better) == pytest.approx((1 / 3, 3))
    assert rate.meets_target
    assert delay.meets_target
    assert not lines_of(results_of(ours=290))[0].meets_target


def test_no_promise_is_made_for_the_unlike_comparison() -> None:
    lines = lines_of(results_of())
    assert [line.target for line in lines if line.row is RATE] == [3, 20, None]


def test_what_does_not_write_is_measured_where_neither_waits_only() -> None:
    assert [setup for setup in SETUPS if READING.concerns(setup)] == [KAFKA, OTTLA_UNFLUSHED]
    assert all(WRITING.concerns(setup) for setup in SETUPS)


def test_what_takes_minutes_is_measured_in_the_first_round_only() -> None:
    once = Trial((RATE,), lambda bench: {}, once=True)
    assert [once.is_due(KAFKA, number) for number in range(3)] == [True, False, False]
    assert all(WRITING.is_due(KAFKA, number) for number in range(3))
    assert not READING.is_due(KAFKA_FLUSHED, 0)


def test_the_table_has_each_comparison_once_and_says_what_failed() -> None:
    results = results_of()
    results.limits = [
        Limit("echo", "/s", 600, bounds="writes"),
        Limit("slow echo", "µs", 20, bounds="delay"),
    ]
    results.fail(KAFKA, READING.rows, "it could not keep up")
    text = table.render(results, lines_of(results))
    assert all(text.count(comparison.title) == 1 for comparison in COMPARISONS)
    assert "Ottla reaches 50%" in text
    assert "Ottla takes 167%" in text
    assert "reads: kafka: it could not keep up" in text
    row = next(line for line in text.splitlines() if line.startswith("writes"))
    assert row.split() == ["writes", "300/s", "±", "10%", "100/s", "±", "10%", "3.00", "≥", "3"]


def test_figures_are_written_with_three_digits_that_say_something() -> None:
    numbers = [table.number(value, "µs") for value in (1234.5, 99.46, 3.14159)]
    assert numbers == ["1,234 µs", "99.5 µs", "3.14 µs"]
    assert table.number(1_500_000, "/s") == "1,500,000/s"


def test_results_can_be_kept_as_json() -> None:
    results = results_of()
    kept = json.loads(json.dumps(results.as_json(lines_of(results))))
    assert len(kept["ratios"]) == len(lines_of(results))
    assert {each["setup"] for each in kept["samples"]} == {setup.key for setup in SETUPS}


def test_what_got_slower_is_told_and_noise_is_not(tmp_path: Path) -> None:
    stored = tmp_path / "ratios.json"
    assert "No ratios of a quick run" in ratios.compare("quick", [], stored)
    before = results_of()
    ratios.store(before, lines_of(before), stored)
    assert "None of 6 rows is slower" in ratios.compare("quick", lines_of(before), stored)
    assert "None of 6 rows is slower" in ratios.compare("quick", lines_of(results_of(ours=250)), stored)
    told = ratios.compare("quick", lines_of(results_of(ours=150)), stored)
    assert "6 of 6 rows" in told
    assert "unflushed: writes: 3.00 → 1.50 times Kafka" in told


def test_storing_one_scale_leaves_the_other_alone(tmp_path: Path) -> None:
    stored = tmp_path / "ratios.json"
    quick, full = results_of(), results_of(ours=900)
    full.scale = "full"
    ratios.store(quick, lines_of(quick), stored)
    ratios.store(full, lines_of(full), stored)
    assert "None of 6 rows is slower" in ratios.compare("quick", lines_of(quick), stored)
    assert "6 of 6 rows" in ratios.compare("full", lines_of(quick), stored)


def test_storing_some_rows_leaves_the_others_alone(tmp_path: Path) -> None:
    stored = tmp_path / "ratios.json"
    before, again = results_of(), results_of(ours=900)
    ratios.store(before, lines_of(before), stored)
    ratios.store(again, [line for line in lines_of(again) if line.row is RATE], stored)
    told = ratios.compare("quick", lines_of(before), stored)
    assert "3 of 6 rows" in told
    assert "delay" not in told


def test_a_broker_that_keeps_nothing_serves_any_client(tmp_path: Path) -> None:
    with empty_broker.serving(100) as address:
        producer = Producer({"bootstrap.servers": address, "acks": "all"})
        producer.produce("nowhere", b"x" * 100_000)
        producer.produce("nowhere", b"small")
        assert producer.flush(20) == 0
        client = {"bootstrap.servers": address, "group.id": "none", "enable.auto.commit": False}
        consumer = Consumer(client)
        consumer.assign([TopicPartition("nowhere", 0, 5)])
        found = []
        while len(found) < 100 and (message := consumer.poll(20)) is not None:
            found.append(message.offset())
        consumer.close()
    assert found == list(range(5, 105))


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    plot.draw(lines_of(results_of()), tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


def test_every_declared_row_has_a_name_of_its_own() -> None:
    names = [row.name for trial in TRIALS for row in trial.rows]
    assert len(names) == len(set(names))
    assert any(trial.quick for trial in TRIALS)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_process_is_measured_and_its_children_are_pinned() -> None:
    assert os.getpid() in family(os.getpid())
    assert resident_mib(os.getpid()) > 1
    assert cpu_seconds(os.getpid()) > 0
    before = os.sched_getaffinity(0)
    core = min(before)
    with on_core(core):
        assert os.sched_getaffinity(0) == {core}
    assert os.sched_getaffinity(0) == before
