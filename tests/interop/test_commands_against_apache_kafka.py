"""The commands that speak to clusters do their work against Apache Kafka too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.program import Program
from compat.broker import unique_name
from interop.apache_kafka import apache_kafka

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def ottla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder: Path = tmp_path_factory.mktemp("kafka")
    with apache_kafka(folder) as bootstrap:
        yield Program(folder, {"OTTLA_BOOTSTRAP": bootstrap})


def test_topics_come_change_and_go(ottla: Program) -> None:
    topic = unique_name("away")
    ottla.ok("topic", "create", topic, "-p", "2", "-c", "retention.ms=60000")
    assert "exists" in ottla.fails(1, "topic", "create", topic)
    assert topic in ottla.ok("topic", "ls").out
    assert ottla.ok("topic", "show", topic, "-o", "json").json["settings"]["retention.ms"] == "60000"
    ottla.ok("topic", "alter", topic, "-p", "3", "-c", "retention.ms=70000", "--yes")
    assert len(ottla.ok("topic", "show", topic, "-o", "jsonl").json_lines) == 3
    ottla.ok("topic", "rm", topic, "--yes")
    assert "there is no topic" in ottla.fails(4, "topic", "show", topic)


def test_records_go_there_and_back(ottla: Program) -> None:
    topic = unique_name("away")
    ottla.ok("topic", "create", topic)
    ottla.ok("produce", topic, "-k", "k", "-H", "h=1", "-z", "zstd", stdin="one\ntwo\nthree\n")
    assert ottla.ok("consume", topic).out == "one\ntwo\nthree\n"
    assert ottla.ok("consume", topic, "--from=-1", "-f", "%k %v %h").out == "k three h=1"
    ottla.ok("produce", stdin=ottla.ok("consume", topic, "-o", "json").out)
    assert ottla.ok("topic", "show", topic, "-o", "jsonl").json_lines[0]["end"] == 6
    ottla.ok("topic", "trim", topic, "--before", "4", "--yes")
    assert ottla.ok("topic", "tail", topic, "--no-follow").out == "two\nthree\n"
    assert "max.message.bytes" in ottla.fails(
        1, "produce", topic, "--random", "2MB", "-n", "1", "-c", "max.request.size=9000000"
    )


def test_settings_and_the_cluster_are_shown_and_changed(ottla: Program) -> None:
    topic = unique_name("away")
    ottla.ok("topic", "create", topic)
    ottla.ok("config", "set", f"topic:{topic}", "segment.bytes=2000000")
    (row,) = ottla.ok("config", "get", f"topic:{topic}", "segment.bytes", "-o", "json").json
    assert (row["value"], row["source"]) == ("2000000", "dynamic topic")
    ottla.ok("config", "set", "broker:1", "log.cleaner.threads=2")
    assert ottla.ok("config", "get", "broker:1", "log.cleaner.threads", "-o", "json").json[0]["value"] == "2"
    (broker,) = ottla.ok("cluster", "show", "-o", "json").json["brokers"]
    assert broker["address"] == ottla.environment["OTTLA_BOOTSTRAP"]
    assert "Produce" in ottla.ok("cluster", "show", "--apis").out


@pytest.mark.parametrize("run", ["produce", "consume", "e2e"])
def test_benchmarks_measure_it(ottla: Program, run: str) -> None:
    assert ottla.ok("bench", run, "-n", "300", "-o", "json").json["records"] == 300
