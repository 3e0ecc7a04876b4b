"""ottla topic: every verb against a real broker, used rightly and wrongly."""

from __future__ import annotations

import pytest

from calls import append
from cli.program import Program
from compat.broker import unique_name
from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.fixture
def topic(client: Program) -> str:
    name = unique_name("orders")
    client.ok("topic", "create", name, "-p", "2")
    return name


def fill(broker: BrokerProcess, topic: str, count: int) -> None:
    with WireClient(broker.bootstrap) as wire:
        for number in range(count):
            append(wire, topic, b"%d" % number)


def test_topics_are_created_with_partitions_and_settings(client: Program) -> None:
    first, second = unique_name("a"), unique_name("b")
    done = client.ok("topic", "create", first, second, "-p", "3", "-c", "retention.ms=60000")
    assert done.out.splitlines() == [f"topic {first} created", f"topic {second} created"]
    shown = client.ok("topic", "show", second, "-o", "json").json
    assert shown["settings"] == {"retention.ms": "60000"}
    assert [partition["partition"] for partition in shown["partitions"]] == [0, 1, 2]


def test_a_topic_that_exists_fails_unless_that_is_fine(client: Program, topic: str) -> None:
    assert "already exists" in client.fails(1, "topic", "create", topic)
    assert "exists" in client.ok("topic", "create", topic, "--if-not-exists").out


def test_a_dry_run_creates_nothing(client: Program) -> None:
    name = unique_name("dry")
    assert f"topic {name} created (not done)" in client.ok("topic", "create", name, "--dry-run").out
    client.fails(4, "topic", "show", name)


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("create",), 2, "required: NAME"),
        (("create", "a b"), 2, "may only use ASCII"),
        (("create", "x", "-r", "9"), 2, "INVALID_REPLICATION_FACTOR"),
        (("create", "x", "-c", "retention.ms"), 2, "expected NAME=VALUE"),
        (("create", "x", "-c", "retention.mss=1"), 2, "did you mean retention.ms?"),
        (("create", "x", "-p", "many"), 2, "invalid int value"),
        (("show", "nowhere"), 4, "there is no topic 'nowhere'"),
        (("alter", "nowhere", "-p", "2"), 4, "there is no topic 'nowhere'"),
        (("rm", "nowhere"), 4, "there is no topic 'nowhere'"),
        (("trim", "nowhere", "--before", "end"), 4, "there is no topic 'nowhere'"),
        (("list",), 2, "did you mean"),
        (("ls", "-o", "xml"), 2, "'xml' is not known"),
    ],
)
def test_wrong_use_names_the_cause(
    client: Program, arguments: tuple[str, ...], code: int, cause: str
) -> None:
    assert cause in client.fails(code, "topic", *arguments)


def test_ls_has_a_form_for_people_and_three_for_programs(client: Program, topic: str) -> None:
    table = client.ok("topic", "ls").out
    assert table.startswith("TOPIC")
    assert "\x1b" not in table
    row = {"topic": topic, "partitions": 2, "replicas": 1}
    assert client.ok("topic", "ls", topic, "-o", "json").json == [row]
    assert client.ok("topic", "ls", topic, "-o", "jsonl").json_lines == [row]
    assert client.ok("topic", "ls", topic, "-o", "csv").out == f"topic,partitions,replicas\n{topic},2,1\n"
    assert client.ok("topic", "ls", "no-such-*", "-o", "json").json == []


def test_ls_long_counts_records_and_bytes(client: Program, broker: BrokerProcess, topic: str) -> None:
    fill(broker, topic, 3)
    (row,) = client.ok("topic", "ls", topic, "-l", "-o", "json").json
    assert row["records"] == 3
    assert row["bytes"] > 0


def test_an_unknown_topic_suggests_near_names(client: Program, topic: str) -> None:
    assert f"did you mean {topic}" in client.fails(4, "topic", "show", topic[:-1] + "x")


def test_show_has_the_offsets_of_every_partition(client: Program, broker: BrokerProcess, topic: str) -> None:
    fill(broker, topic, 2)
    partitions = client.ok("topic", "show", topic, "-o", "jsonl").json_lines
    assert [(row["start"], row["end"]) for row in partitions] == [(0, 2), (0, 0)]
    assert "PARTITION  LEADER" in client.ok("topic", "show", topic).out


def test_settings_are_changed_and_set_back(client: Program, topic: str) -> None:
    client.ok("topic", "alter", topic, "-c", "retention.ms=1000", "-c", "segment.ms=5000")
    assert client.ok("topic", "show", topic, "-o", "json").json["settings"] == {
        "retention.ms": "1000",
        "segment.ms": "5000",
    }
    client.ok("topic", "alter", topic, "--unset", "retention.ms")
    assert client.ok("topic", "show", topic, "-o", "json").json["settings"] == {"segment.ms": "5000"}
    client.ok("topic", "alter", topic, "-c", "segment.ms=6000", "--dry-run")
    assert client.ok("topic", "show", topic, "-o", "json").json["settings"] == {"segment.ms": "5000"}
    assert "nothing to change" in client.fails(2, "topic", "alter", topic)


def test_partitions_grow_only_when_confirmed(client: Program, topic: str) -> None:
    assert "cannot be taken away" in client.fails(5, "topic", "alter", topic, "-p", "3")
    assert "(not done)" in client.ok("topic", "alter", topic, "-p", "3", "--dry-run").out
    assert len(client.ok("topic", "show", topic, "-o", "json").json["partitions"]) == 2
    client.ok("topic", "alter", topic, "-p", "3", "--yes")
    assert len(client.ok("topic", "show", topic, "-o", "json").json["partitions"]) == 3
    assert "INVALID_PARTITIONS" in client.fails(2, "topic", "alter", topic, "-p", "1", "--yes")


def test_rm_shows_what_goes_and_needs_a_yes(client: Program, broker: BrokerProcess, topic: str) -> None:
    fill(broker, topic, 3)
    refused = client("topic", "rm", topic)
    assert refused.code == 5
    assert refused.out.splitlines()[1].split() == [topic, "2", "3"]
    client.ok("topic", "rm", topic, "--dry-run")
    client.ok("topic", "show", topic)
    assert "1 topic deleted" in client.ok("topic", "rm", topic, "--yes").out
    client.fails(4, "topic", "show", topic)


def test_trim_deletes_what_is_before_a_place(client: Program, broker: BrokerProcess, topic: str) -> None:
    fill(broker, topic, 10)
    refused = client("topic", "trim", topic, "--before", "4")
    assert refused.code == 5
    assert refused.out.splitlines()[1].split() == [topic, "0", "0", "4", "4"]
    client.ok("topic", "trim", topic, "--before", "4", "--yes")
    assert client.ok("topic", "show", topic, "-o", "jsonl").json_lines[0]["start"] == 4
    client.ok("topic", "trim", topic, "--before=-1", "-p", "0", "--yes")
    assert client.ok("topic", "show", topic, "-o", "jsonl").json_lines[0]["start"] == 9
    assert "0 records deleted" in client.ok("topic", "trim", topic, "--before", "start", "--yes").out
    assert "is no place in a partition" in client.fails(2, "topic", "trim", topic, "--before", "yesterday")
    assert "has no partition 7" in client.fails(4, "topic", "trim", topic, "--before", "end", "-p", "7")


def test_programs_are_told_what_was_changed(client: Program, broker: BrokerProcess) -> None:
    topic = unique_name("told")
    assert client.ok("topic", "create", topic, "-o", "json").json == [
        {"topic": topic, "partitions": 1, "outcome": "created", "done": True}
    ]
    fill(broker, topic, 2)
    altered = client.ok("topic", "alter", topic, "-p", "2", "-c", "segment.ms=1", "--yes", "-o", "jsonl")
    assert altered.json_lines == [
        {"change": "partitions", "before": 1, "after": 2, "done": True},
        {"change": "segment.ms", "before": "604800000", "after": "1", "done": True},
    ]
    trimmed = client.ok("topic", "trim", topic, "--before", "1", "--yes", "-o", "csv").out
    assert trimmed == f"topic,partition,from,before,records,done\n{topic},0,0,1,1,true\n"
    planned = client.ok("topic", "rm", topic, "--dry-run", "-o", "json").json
    assert planned == [{"topic": topic, "partitions": 2, "records": 1, "done": False}]
