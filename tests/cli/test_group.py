"""ottla group: every verb against a real broker, used rightly and wrongly."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer

from calls import append, commit_request
from cli.program import Program
from compat.broker import unique_name
from group_calls import find_coordinator
from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.fixture
def topic(broker: BrokerProcess, client: Program) -> str:
    """Two partitions with ten records each."""
    name = unique_name("orders")
    client.ok("topic", "create", name, "-p", "2")
    with WireClient(broker.bootstrap) as wire:
        for partition in range(2):
            append(wire, name, *(b"%d" % number for number in range(10)), partition=partition)
    return name


@pytest.fixture
def group(broker: BrokerProcess, topic: str) -> str:
    """It has read three records of the first partition and all of the second."""
    name = unique_name("billing")
    with WireClient(broker.bootstrap) as wire:
        find_coordinator(wire, name)
        wire.call(commit_request(name, topic, 3), 9)
        wire.call(commit_request(name, topic, 10, partition=1), 9)
    return name


@pytest.fixture
def active(broker: BrokerProcess, topic: str) -> Iterator[str]:
    """A group with a member."""
    name = unique_name("active")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "client.id": "worker-7"})
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    yield name
    consumer.close()


def offsets(client: Program, group: str) -> list[int]:
    return [each["committed"] for each in client.ok("group", "show", group, "-o", "json").json["partitions"]]


def test_groups_are_listed(client: Program, group: str) -> None:
    rows = client.ok("group", "ls", "-o", "json").json
    assert {"group": group, "state": "Empty", "type": "classic"} in rows
    assert client.ok("group", "ls", "nothing*", "-o", "json").json == []
    (row,) = client.ok("group", "ls", group, "-l", "-o", "json").json
    assert (row["members"], row["partitions"], row["lag"]) == (0, 2, 7)


def test_a_group_is_shown_with_its_lag(client: Program, group: str, topic: str) -> None:
    shown = client.ok("group", "show", group, "-o", "json").json
    assert (shown["state"], shown["members"]) == ("Empty", 0)
    behind, done = shown["partitions"]
    assert (behind["topic"], behind["committed"], behind["end"], behind["lag"]) == (topic, 3, 10, 7)
    assert behind["lag_seconds"] >= 0
    assert (done["lag"], done["lag_seconds"]) == (0, None)
    table = client.ok("group", "show", group).out
    assert "LAG SECONDS" in table


def test_partitions_are_sorted_by_lag(client: Program, broker: BrokerProcess, group: str, topic: str) -> None:
    with WireClient(broker.bootstrap) as wire:
        wire.call(commit_request(group, topic, 1, partition=1), 9)
    for sort, order in (("partition", [0, 1]), ("lag", [1, 0])):
        rows = client.ok("group", "show", group, "--sort", sort, "-o", "jsonl").json_lines
        assert [row["partition"] for row in rows] == order


def test_members_and_their_partitions(client: Program, active: str, topic: str) -> None:
    (row,) = client.ok("group", "members", active, "-o", "json").json
    assert (row["client"], row["host"]) == ("worker-7", "127.0.0.1")
    assert row["partitions"] == [f"{topic}-0", f"{topic}-1"]
    assert [
        each["member"] for each in client.ok("group", "show", active, "-o", "json").json["partitions"]
    ] == [
        "worker-7",
        "worker-7",
    ]


def test_watching_looks_again(client: Program, group: str) -> None:
    rows = client.ok("group", "watch", group, "-n", "0.1", "--count", "2", "-o", "jsonl").json_lines
    assert [row["lag"] for row in rows] == [7, 0, 7, 0]
    assert client.ok("group", "watch", group, "--count", "1").out.startswith(
        f"{group}  Empty  0 members  lag 7"
    )


def test_a_reset_is_only_shown_unless_confirmed(client: Program, group: str) -> None:
    done = client.ok("group", "reset", group, "--to", "start")
    assert "OLD" in done.out
    assert "(not done)" in done.out
    assert offsets(client, group) == [3, 10]
    assert not list(client.home.glob("*.json"))


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (("--to", "4"), [4, 4]),
        (("--to=-2",), [8, 8]),
        (("--to", "@-1h"), [0, 0]),
        (("--shift", "-5"), [0, 5]),
        (("--shift", "100"), [10, 10]),
    ],
    ids=["offset", "from the end", "time", "back", "forward"],
)
def test_offsets_are_moved_and_moved_back(
    client: Program, group: str, where: tuple[str, ...], expected: list[int]
) -> None:
    rows = client.ok("group", "reset", group, *where, "--yes", "-o", "json").json
    assert [(row["old"], row["new"]) for row in rows] == list(zip([3, 10], expected, strict=True))
    assert offsets(client, group) == expected
    (undo,) = client.home.glob("*.json")
    client.ok("group", "reset", group, "--file", str(undo), "--yes", "--undo-file", "redo.json")
    assert offsets(client, group) == [3, 10]
    assert [each["offset"] for each in json.loads((client.home / "redo.json").read_text())] == expected


def test_only_the_topics_that_are_named_are_moved(client: Program, group: str, topic: str) -> None:
    other = unique_name("other")
    client.ok("topic", "create", other)
    client.ok("group", "reset", group, "--to", "start", "-t", other, "--yes")
    rows = client.ok("group", "show", group, "-o", "json").json["partitions"]
    assert {(row["topic"], row["partition"]): row["committed"] for row in rows} == {
        (other, 0): 0,
        (topic, 0): 3,
        (topic, 1): 10,
    }


def test_a_file_moves_only_the_topics_that_are_named_and_its_undo_forgets_what_was_not_there(
    client: Program, group: str, topic: str
) -> None:
    other = unique_name("other")
    client.ok("topic", "create", other)
    begun = [{"topic": name, "partition": 0, "offset": 0} for name in (topic, other)]
    (client.home / "both.json").write_text(json.dumps(begun))
    client.ok(
        "group", "reset", group, "--file", "both.json", "-t", other, "--yes", "--undo-file", "undo.json"
    )
    assert json.loads((client.home / "undo.json").read_text()) == [{**begun[1], "offset": None}]
    rows = client.ok("group", "show", group, "-o", "json").json["partitions"]
    assert [(row["topic"], row["committed"]) for row in rows] == [(topic, 3), (topic, 10), (other, 0)]
    client.ok("group", "reset", group, "--file", "undo.json", "--yes", "--undo-file", "redo.json")
    assert offsets(client, group) == [3, 10]


def test_a_reset_of_a_group_that_is_not_there_says_so(client: Program) -> None:
    told = client.fails(4, "group", "reset", "nobody", "--shift", "3", "--yes")
    assert "group nobody has committed nothing" in told


def test_an_active_group_is_not_moved_and_not_deleted(client: Program, active: str, topic: str) -> None:
    for command in (("reset", active, "--to", "start", "-t", topic, "--yes"), ("rm", active, "--yes")):
        told = client.fails(1, "group", *command)
        assert "worker-7 at 127.0.0.1" in told
        assert "stop them first" in told


def test_a_file_that_holds_no_offsets_is_refused(client: Program, group: str) -> None:
    (client.home / "bad.json").write_text('[{"topic": "x"}]')
    assert "does not hold offsets" in client.fails(2, "group", "reset", group, "--file", "bad.json")
    assert "bad2.json" in client.fails(4, "group", "reset", group, "--file", "bad2.json")


def test_records_of_groups_are_told_in_words(client: Program, group: str, topic: str) -> None:
    lines = client.ok("consume", "__consumer_offsets").out.splitlines()
    (told, *_) = [line for line in lines if line.startswith(f"offset of group {group} in {topic}-0: ")]
    assert ", committed at 1" in told
    rows = client.ok("consume", "__consumer_offsets", "-o", "jsonl").json_lines
    assert f"offset of group {group} in {topic}-0" in [row["key"] for row in rows]


def test_groups_are_deleted_after_asking(client: Program, group: str) -> None:
    assert "--yes" in client.fails(5, "group", "rm", group)
    client.ok("group", "rm", group, "--dry-run")
    assert offsets(client, group) == [3, 10]
    client.ok("group", "rm", group, "--yes")
    assert group in client.fails(4, "group", "show", group)


def test_groups_are_completed_live(client: Program, group: str) -> None:
    assert client.ok("__complete", "group", "show", group[:-3]).out.splitlines() == [group]
