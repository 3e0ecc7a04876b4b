"""What holds for every command: help, exit codes, errors without a broker, output that is closed."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading

import pytest

from cli.program import Program
from ottla.cli.commands import COMMANDS
from ottla.testing import BrokerProcess


def test_help_lists_every_command_and_the_exit_codes(ottla: Program) -> None:
    said = ottla.ok("--help").out
    for command in COMMANDS:
        assert f"\n    {command.name}" in said
    assert "3 no broker answers" in " ".join(said.split())


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_has_help_and_refuses_unknown_options(ottla: Program, command: str) -> None:
    assert ottla.ok(command, "--help").out.startswith(f"usage: ottla {command}")
    assert ottla(command, "--no-such-option").code == 2


def test_a_mistyped_command_suggests_the_right_one(ottla: Program) -> None:
    assert "did you mean topic?" in ottla.fails(2, "topics")
    assert "required: COMMAND" in ottla.fails(2)


def test_the_version_is_the_packages(ottla: Program) -> None:
    from ottla import __version__

    assert ottla.ok("--version").out == f"ottla {__version__}\n"


def test_without_a_broker_the_cure_is_to_start_one(ottla: Program) -> None:
    said = ottla.fails(3, "topic", "ls", "-b", "127.0.0.1:1")
    assert "no broker at 127.0.0.1:1 (connection refused)" in said
    assert "`ottla up`" in said


@pytest.mark.parametrize(
    ("greeting", "kind"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"), (b"\x15\x03\x01\x00\x02\x02\x46", "TLS")],
)
def test_another_kind_of_server_is_recognised(ottla: Program, greeting: bytes, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                with peer, contextlib.suppress(OSError):  # the program may have closed its end by then
                    peer.recv(1000)
                    peer.sendall(greeting)

        threading.Thread(target=answer, daemon=True).start()
        said = ottla.fails(3, "topic", "ls", "-b", f"127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)
    assert f"speaks {kind}" in said


def test_a_traceback_is_shown_only_on_request(ottla: Program) -> None:
    quiet = ottla("topic", "ls", "-b", "127.0.0.1:1")
    assert "Traceback" not in quiet.err
    assert "Traceback" in ottla("topic", "ls", "-b", "127.0.0.1:1", "--debug").err
    assert "Traceback" in ottla("--debug", "topic", "ls", "-b", "127.0.0.1:1").err
    assert "Traceback" in ottla("topic", "ls", "-b", "127.0.0.1:1", OTTLA_DEBUG="1").err


def test_output_that_nobody_reads_ends_quietly(ottla: Program) -> None:
    running = subprocess.Popen(
        ottla.command("config", "explain", "-o", "jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ottla.environment,
    )
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    assert running.wait(60) == 141
    assert running.stderr.read() == b""
    running.stderr.close()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(ottla: Program, shell: str) -> None:
    assert "ottla __complete" in ottla.ok("completion", shell).out
    assert "expected" in ottla.fails(2, "completion", "tcsh")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("to",), ["topic"]),
        (("topic", "cr"), ["create"]),
        (("topic", "create", "x", "--part"), ["--partitions"]),
        (("topic", "ls", "-o", "js"), ["json", "jsonl"]),
        (("topic", "ls", "--output=js"), ["--output=json", "--output=jsonl"]),
        (("config", "explain", "retention."), ["retention.bytes", "retention.ms"]),
        (("topic", "create", "x", "-c", "retention.m"), ["retention.ms="]),
        (("no", "such", "command", ""), []),
    ],
)
def test_words_are_completed(ottla: Program, words: tuple[str, ...], expected: list[str]) -> None:
    assert ottla.ok("__complete", *words).out.splitlines() == expected


def test_topics_are_completed_live(client: Program, broker: BrokerProcess) -> None:
    client.ok("topic", "create", "completed-one", "completed-two", "other")
    names = ["completed-one", "completed-two"]
    assert client.ok("__complete", "topic", "show", "comp").out.splitlines() == names
    assert client.ok("__complete", "config", "get", "topic:comp").out.splitlines() == [
        f"topic:{name}" for name in names
    ]
    elsewhere = ("topic", "show", "-b", "127.0.0.1:1", "comp")
    assert client.ok("__complete", *elsewhere).out == ""


def test_a_mistyped_option_suggests_the_right_one_of_its_command(ottla: Program) -> None:
    said = ottla.fails(2, "topic", "create", "x", "--partition", "3")
    assert "did you mean --partitions?" in said
    assert "`ottla topic create --help`" in said
    assert "expected 0 or more" in ottla.fails(2, "logs", "-n", "-3")


@pytest.mark.parametrize("command", [("topic", "create", "x"), ("produce", "x")])
def test_an_advertised_address_that_nobody_answers_at_is_told_with_the_setting(
    ottla: Program, command: tuple[str, ...]
) -> None:
    with BrokerProcess(settings={"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}) as broker:
        said = ottla.fails(3, *command, "-b", broker.bootstrap, stdin="a record\n")
    assert "says that a broker is at 127.0.0.1:1" in said
    assert "set advertised.listeners" in said
