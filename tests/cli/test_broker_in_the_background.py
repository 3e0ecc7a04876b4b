"""up -d, status, logs and down, from a first start to a failure, and what each says when used wrongly."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import create_topic
from cli.program import DEADLINE_SECONDS, Program
from node.test_settings import RAFT_FILE, STOCK_FILE
from wire import WireClient

PORTS = (
    *("--set", "listeners=PLAINTEXT://127.0.0.1:0"),
    *("--set", "ottla.http.port=0", "--set", "clientPort=0"),
)


@pytest.fixture
def started(ottla: Program) -> Iterator[Program]:
    ottla.ok("up", "-d", *PORTS)
    yield ottla
    ottla("down")


def status(ottla: Program, *arguments: str) -> dict[str, object]:
    facts: dict[str, object] = ottla("status", "-o", "json", *arguments).json
    return facts


def test_up_returns_when_the_broker_answers_and_down_when_it_is_gone(ottla: Program) -> None:
    up = ottla.ok("up", "-d", *PORTS)
    facts = status(ottla)
    assert facts["state"] == "running"
    assert f"(pid {facts['pid']})" in up.out
    (listener,) = facts["listens_on"]  # type: ignore[misc]
    with WireClient(listener.removeprefix("PLAINTEXT://")) as client:
        create_topic(client)
    down = ottla.ok("down")
    assert f"(pid {facts['pid']})" in down.out
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(listener.rpartition(":")[2])))
    assert ottla("status").code == 3
    said = ottla.ok("logs").out
    assert "serves 0 partitions" in said
    assert "has stopped" in said
    rows = json.loads(ottla.ok("logs", "-o", "json").out)
    assert len(rows) == len(said.splitlines())
    assert {row["level"] for row in rows} == {"info"}
    assert any("has stopped" in row["message"] for row in rows)


def test_up_says_where_it_listens_where_data_is_and_how_to_try_it(ottla: Program) -> None:
    up = ottla.ok("up", "-d", *PORTS)
    ottla.ok("down")
    assert up.err == ""
    titles = [line[2:12].strip() for line in up.out.splitlines()[1:]]
    assert titles == ["listens on", "keeps data", "zookeeper", "metrics", "try it", "stop it"]
    assert str(ottla.home / "data" / "ottla" / "log") in up.out


def test_a_second_broker_on_the_data_is_refused_with_the_first_ones_process(started: Program) -> None:
    pid = status(started)["pid"]
    assert f"the broker with pid {pid} runs already" in started.fails(1, "up", "-d", *PORTS)
    assert f"the broker with pid {pid} runs already" in started.fails(1, "up", *PORTS)
    assert status(started)["pid"] == pid


def test_data_that_another_process_holds_is_not_touched(started: Program) -> None:
    announced = started.home / "data" / "ottla" / "coordination" / "broker.json"
    announced.rename(announced.with_suffix(".kept"))  # as of one that does not serve yet
    assert status(started)["state"] == "starting"
    assert "another process uses the data" in started.fails(1, "up", *PORTS)
    announced.with_suffix(".kept").rename(announced)
    assert status(started)["state"] == "running"


def test_a_taken_port_is_told_with_who_has_it(started: Program) -> None:
    (listener,) = status(started)["listens_on"]  # type: ignore[misc]
    port = listener.rpartition(":")[2]
    said = started.fails(1, "up", "-d", "--data", "other", "--port", port)
    assert f"port {port} is taken by " in said
    assert f"(pid {status(started)['pid']})" in said
    for setting in ("clientPort", "ottla.http.port"):
        said = started.fails(1, "up", "--data", "other", *PORTS, "--set", f"{setting}={port}")
        assert f"port {port} is taken by " in said
        assert f"set {setting} to another port" in said
    assert "is taken by " in started.fails(1, "coordination", "up", "--data", "third", "--port", port)


def test_up_and_down_tell_programs_what_they_did(ottla: Program) -> None:
    up = ottla.ok("up", "-d", *PORTS, "--data", "a folder", "-o", "json").json
    assert up["listeners"].keys() == {"PLAINTEXT"}
    assert ottla.ok("down", "--data", "a folder", "-o", "json").json == [
        {"broker": 1, "pid": up["pid"], "done": True}
    ]
    people = ottla.ok("up", "-d", *PORTS, "--data", "a folder").out
    assert people.splitlines()[-1].endswith("ottla down --data 'a folder'")
    ottla.ok("down", "--data", "a folder")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("--set", "num.partitons=3"), "did you mean num.partitions?"),
        (("--config", "nowhere.properties"), "nowhere.properties: cannot be read"),
        (("--port", "many"), "invalid int value"),
        (("--log-format", "xml"), "'xml' is not known"),
    ],
)
def test_wrong_use_of_up_starts_nothing(ottla: Program, arguments: tuple[str, ...], cause: str) -> None:
    assert cause in ottla.fails(2, "up", "-d", *arguments)
    assert not (ottla.home / "data").exists()


def test_settings_without_effect_are_told_at_once(ottla: Program) -> None:
    up = ottla.ok("up", "-d", *PORTS, "--set", "process.roles=broker")
    ottla.ok("down")
    assert up.err.startswith("note: --set: process.roles has no effect")


@pytest.mark.parametrize("content", [STOCK_FILE, RAFT_FILE])
def test_a_file_of_apache_kafka_starts_a_broker_with_a_note_for_each_key_without_effect(
    ottla: Program, content: str
) -> None:
    file = ottla.home / "server.properties"
    file.write_text(content)
    here = (*PORTS, "--set", "advertised.listeners=", "--set", f"log.dirs={ottla.home}/logs")
    up = ottla.ok("up", "-d", "--config", str(file), *here, "-o", "json")
    notes = [line for line in up.err.splitlines() if "num.io.threads" in line]
    assert notes == ["note: num.io.threads=8 has no effect: " + notes[0].partition("effect: ")[2]]
    assert len(set(up.err.splitlines())) == len(up.err.splitlines())
    address = up.json["listeners"]["PLAINTEXT"]
    ottla.ok("produce", "first", "-b", address, stdin="hello\n")
    assert ottla.ok("consume", "first", "-b", address).out == "hello\n"
    ottla.ok("down", "--config", str(file), "--set", f"log.dirs={ottla.home}/logs")


def test_a_settings_file_names_the_broker_to_all_four_commands(ottla: Program) -> None:
    file = ottla.home / "server.properties"
    file.write_text(
        "listeners=PLAINTEXT://127.0.0.1:0\nottla.http.port=0\nclientPort=0\nlog.dirs=elsewhere\n"
    )
    ottla.ok("up", "-d", "--config", str(file))
    assert ottla("status").code == 3
    assert status(ottla, "--config", str(file))["data"] == [str(ottla.home / "elsewhere")]
    assert "serves" in ottla.ok("logs", "--config", str(file)).out
    ottla.ok("down", "--config", str(file))


def test_down_and_logs_without_a_broker_say_what_to_name(ottla: Program) -> None:
    assert "--data" in ottla.fails(3, "down")
    assert "`ottla up -d`" in ottla.fails(4, "logs")


def test_a_killed_broker_counts_as_stopped_and_starts_again(started: Program) -> None:
    pid = status(started)["pid"]
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while status(started)["state"] != "stopped":
        assert time.monotonic() < deadline
    started.fails(3, "down")
    started.ok("up", "-d", *PORTS)


def test_why_a_broker_stopped_is_remembered_until_the_next_start(started: Program) -> None:
    home = started.home / "data" / "ottla" / "coordination"
    started.ok("down")
    (home / "broker.failure").write_text("the disk did not take what was written\n")
    facts = started("status", "-o", "json")
    assert facts.code == 3
    assert facts.json["stopped_because"] == "the disk did not take what was written"
    started.ok("up", "-d", *PORTS)
    assert started.ok("status").code == 0


def test_an_offline_partition_shows_in_status_and_health(started: Program) -> None:
    (listener,) = status(started)["listens_on"]  # type: ignore[misc]
    bootstrap = listener.removeprefix("PLAINTEXT://")
    started.ok("topic", "create", "broken", "-b", bootstrap)
    started.ok("produce", "broken", "-b", bootstrap, stdin="x\n")
    started.ok("down")
    (segment,) = (started.home / "data" / "ottla" / "log" / "broken-0").glob("*.log")
    segment.unlink()
    segment.mkdir()  # what no broker can open
    started.ok("up", "-d", *PORTS)
    degraded = started("status", "-o", "json")
    assert degraded.code == 1
    assert degraded.json["state"] == "degraded"
    (problem,) = degraded.json["problems"]
    assert problem["check"] == "partitions"
    assert "broken-0" in problem["text"]
    assert "broken-0" in started("status").out


def test_logs_are_followed_as_they_come_also_into_the_next_file(started: Program) -> None:
    log_file = started.home / "data" / "ottla" / "coordination" / "broker.log"
    following = subprocess.Popen(
        started.command("logs", "-f", "-n", "1"), stdout=subprocess.PIPE, env=started.environment, text=True
    )
    assert following.stdout is not None
    try:
        assert "serves" in following.stdout.readline()
        log_file.rename(log_file.with_name("broker.log.1"))
        log_file.write_text("a line of the next file\n")
        assert following.stdout.readline() == "a line of the next file\n"
    finally:
        following.kill()
        following.communicate()
    assert len(started.ok("logs", "-n", "2").out.splitlines()) == 2


def test_log_lines_are_json_on_request(ottla: Program) -> None:
    ottla.ok("up", "-d", *PORTS, "--log-format", "json")
    ottla.ok("down")
    lines = [json.loads(line) for line in ottla.ok("logs").out.splitlines()]
    assert {"time", "level", "logger", "message", "event"} == lines[0].keys()
    assert lines[0]["event"] == "broker %d serves %d partitions on %s"


def test_environment_variables_are_settings(ottla: Program, tmp_path: Path) -> None:
    ottla.ok("up", "-d", OTTLA_LISTENERS="PLAINTEXT://127.0.0.1:0", OTTLA_HTTP_PORT="-1", OTTLA_NODE_ID="7")
    facts = status(ottla)
    ottla.ok("down")
    assert (facts["broker"], facts["http"]) == (7, None)


def test_doctor_has_advice_in_every_form_and_takes_no_verbs(ottla: Program) -> None:
    rows = ottla.ok("doctor", "-o", "json").json
    assert {"ottla", "python", "record kernel", "open files", "disk"} <= {row["what"] for row in rows}
    assert ottla.ok("doctor", "-o", "csv").out.startswith("what,value,advice\n")
    assert len(ottla.ok("doctor", "-o", "jsonl").json_lines) == len(rows)
    assert "unrecognized arguments: now" in ottla.fails(2, "doctor", "now")
