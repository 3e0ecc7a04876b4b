"""Commands that wait in vain say for what and why, and fail with the cause and a cure."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.program import DEADLINE_SECONDS, Program
from cli.terminal import Terminal
from ottla.client import Admin, Producer
from ottla.model.topics import TopicPartition
from ottla.testing import BrokerProcess

OFFLINE = "broken-0 is offline"
CURE = "look at the brokers that hold it (1)"


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker that cannot use the files of the topic `broken`."""
    folder: Path = tmp_path_factory.mktemp("broker")
    with BrokerProcess(folder) as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("broken", partitions=1)
        with Producer(broker.bootstrap) as producer:
            producer.send("broken", b"there once")
        broker.stop()
        (segment,) = folder.rglob("broken-0/*.log")
        segment.unlink()
        segment.mkdir()
        broker.start()
        yield broker.bootstrap


def begun(program: Program, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        program.command(*arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program.environment,
        cwd=program.home,
    )


def test_who_waits_for_an_offline_partition_is_told_so_and_fails_with_the_cause(
    ottla: Program, offline: str
) -> None:
    there = ("-b", offline)
    late = ("-X", "delivery.timeout.ms=3500", "-X", "request.timeout.ms=3000")
    unread = ("-X", "default.api.timeout.ms=3500")
    running = {  # side by side: each of them waits
        "produce": begun(ottla, "produce", "broken", *there, *late),
        "consume": begun(ottla, "consume", "broken", *there, *unread),
        "tail": begun(ottla, "topic", "tail", "broken", *there, *unread),
        "bench": begun(ottla, "bench", "produce", "--topic", "broken", "-n", "1", *there, *late),
    }
    for name, process in running.items():
        given = "a record\n" if name == "produce" else None
        _, said = process.communicate(given, DEADLINE_SECONDS)
        assert process.returncode == 1, said
        told, *rest = said.splitlines()
        assert told.startswith("ottla: still waiting: "), (name, said)
        assert OFFLINE in told
        assert OFFLINE in rest[-2]
        assert CURE in rest[-1]
        assert len(rest) == 2, said  # said once


def test_who_looks_at_an_offline_partition_sees_the_rest(ottla: Program, offline: str) -> None:
    there = ("-b", offline, "-o", "json")
    (partition,) = ottla.ok("topic", "show", "broken", *there).json["partitions"]
    assert (partition["leader"], partition["start"], partition["end"]) == (None, None, None)
    (topic,) = ottla.ok("topic", "ls", "-l", *there).json
    assert (topic["topic"], topic["records"]) == ("broken", None)
    (doomed,) = ottla.ok("topic", "rm", "broken", "--dry-run", *there).json
    assert doomed["records"] is None
    with Admin(offline) as admin:
        admin.alter_group_offsets("reader", {TopicPartition("broken", 0): 1})
    (group,) = ottla.ok("group", "ls", "-l", *there).json
    assert (group["partitions"], group["lag"]) == (1, 0)
    (row,) = ottla.ok("group", "show", "reader", *there).json["partitions"]
    assert (row["committed"], row["end"], row["lag"]) == (1, None, None)
    assert "broken-0: offline" in ottla.fails(1, "topic", "trim", "broken", "--before", "1", *there)


def test_a_broker_that_goes_away_is_named_to_those_who_follow(ottla: Program) -> None:
    with BrokerProcess() as broker:
        ottla.ok("produce", "followed", "-b", broker.bootstrap, stdin="here\n")
        with Terminal(ottla, "topic", "tail", "followed", "-b", broker.bootstrap) as terminal:
            terminal.wait_for("here")
            broker.kill()
            terminal.wait_for(f"still waiting: no broker at {broker.bootstrap}")
            broker.start()
            terminal.interrupt()
            assert terminal.end() == 130
