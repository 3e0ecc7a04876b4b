"""The commands that speak to clusters do their work against Apache Kafka too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

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
        1, "produce", topic, "--random", "2MB", "-n", "1", "-X", "max.request.size=9000000"
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


def test_groups_are_shown_moved_and_deleted(ottla: Program) -> None:
    topic, group = unique_name("away"), unique_name("group")
    ottla.ok("topic", "create", topic)
    ottla.ok("produce", topic, stdin="one\ntwo\nthree\n")
    ottla.ok("group", "reset", group, "--topic", topic, "--to", "1", "--yes")
    assert group in ottla.ok("group", "ls", "-l").out
    (row,) = ottla.ok("group", "show", group, "-o", "jsonl").json_lines
    assert (row["committed"], row["end"], row["lag"]) == (1, 3, 2)
    assert ottla.ok("group", "members", group, "-o", "json").json == []
    ottla.ok("group", "rm", group, "--yes")
    ottla.fails(4, "group", "show", group)


def test_transactions_are_shown_and_ended(ottla: Program) -> None:
    topic, name = unique_name("away"), unique_name("txn")
    ottla.ok("topic", "create", topic)
    producer = Producer({"bootstrap.servers": ottla.environment["OTTLA_BOOTSTRAP"], "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"v")
    producer.flush(60)
    assert ottla.ok("txn", "show", name, "-o", "json").json["state"] == "Ongoing"
    assert [row["id"] for row in ottla.ok("txn", "ls", "--state", "Ongoing", "-o", "json").json] == [name]
    assert ottla.ok("txn", "hanging", topic, "-o", "json").json == []
    ottla.ok("txn", "abort", name, "--yes")
    assert ottla.ok("consume", topic, "--committed").out == ""
    ottla.fails(4, "txn", "show", "nobody")


@pytest.mark.parametrize("run", ["produce", "consume", "e2e"])
def test_benchmarks_measure_it(ottla: Program, run: str) -> None:
    assert ottla.ok("bench", run, "-n", "300", "-o", "json").json["records"] == 300
