"""On a terminal: colour, questions, progress, Ctrl-C, a broker in the foreground."""

from __future__ import annotations

import socket

from cli.program import Program
from cli.terminal import Terminal
from compat.broker import unique_name
from ottla.testing import BrokerProcess

BOLD = "\x1b[1m"


def test_colour_is_for_terminals_and_not_with_no_color(client: Program, broker: BrokerProcess) -> None:
    with Terminal(client, "topic", "ls") as terminal:
        assert terminal.end() == 0
        assert "\x1b[2mTOPIC" in terminal.text
    with Terminal(client, "topic", "ls", NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.text


def test_a_destructive_command_asks_and_takes_no_for_an_answer(client: Program) -> None:
    topic = unique_name("asked")
    client.ok("topic", "create", topic)
    with Terminal(client, "topic", "rm", topic) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("n\n")
        assert terminal.end() == 5
        assert "nothing was done" in terminal.text
    client.ok("topic", "show", topic)
    with Terminal(client, "topic", "rm", topic) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("y\n")
        assert terminal.end() == 0
    client.fails(4, "topic", "show", topic)


def test_a_benchmark_shows_progress_and_ctrl_c_ends_it_with_what_it_has(client: Program) -> None:
    with Terminal(client, "bench", "produce", "-n", "100000000", "--rate", "200") as terminal:
        terminal.wait_for("records/s")
        terminal.interrupt()
        assert terminal.end() == 0
        assert "from send to acknowledgement" in terminal.text
        assert "█" in terminal.text
    assert "ottla-bench" not in client.ok("topic", "ls").out


def test_producing_for_longer_than_a_second_shows_progress_and_ctrl_c_keeps_what_was_sent(
    client: Program,
) -> None:
    topic = unique_name("long")
    with Terminal(client, "produce", topic, "--random", "10", "--rate", "50") as terminal:
        terminal.wait_for("records/s")
        terminal.interrupt()
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
    assert client.ok("consume", topic, "-o", "jsonl").json_lines


def test_lines_typed_on_a_terminal_become_records(client: Program) -> None:
    topic = unique_name("typed")
    with Terminal(client, "produce", topic) as terminal:
        terminal.wait_for("Ctrl-D ends")
        terminal.type("first\nsecond\n\x04")
        assert terminal.end() == 0
        assert f"2 records to {topic}" in terminal.text
    assert client.ok("consume", topic).out == "first\nsecond\n"


def test_a_topic_is_followed_until_ctrl_c(client: Program) -> None:
    topic = unique_name("followed")
    client.ok("produce", topic, stdin="old\n")
    with Terminal(client, "topic", "tail", topic) as terminal:
        terminal.wait_for("old")
        client.ok("produce", topic, stdin="new\n")
        terminal.wait_for("new")
        terminal.interrupt()
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text


def test_a_broker_in_the_foreground_stops_cleanly_on_ctrl_c(ottla: Program) -> None:
    listen = ("--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set", "ottla.http.port=0")
    with Terminal(ottla, "up", *listen) as terminal:
        terminal.wait_for("Ctrl-C")
        assert BOLD in terminal.text
        assert ottla.ok("status", "-o", "json").json["pid"] == terminal.process.pid
        terminal.interrupt()
        assert terminal.end() == 0
        assert "everything is on the disk" in terminal.text
    assert ottla("status").code == 3


def test_who_waits_for_a_broker_sees_for_which(ottla: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        for command in (("topic", "ls"), ("consume", "orders")):
            with Terminal(ottla, *command, "-b", address) as terminal:
                terminal.wait_for(f"waiting for {address} (")
                terminal.interrupt()
                assert terminal.end() == 130
                assert "Traceback" not in terminal.text


def test_reading_that_shows_nothing_says_how_much_was_read(client: Program) -> None:
    topic = unique_name("filtered")
    client.ok("produce", topic, stdin="one\ntwo\n")
    with Terminal(client, "consume", topic, "--follow", "--filter", "value=three") as terminal:
        terminal.wait_for("2 records read (")
        client.ok("produce", topic, stdin="three\n")
        terminal.wait_for("\x1b[Kthree\n")
        terminal.interrupt()
        assert terminal.end() == 130
