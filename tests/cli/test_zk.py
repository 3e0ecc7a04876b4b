"""`ottla zk` and `ottla coordination up`, as a person uses them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.zookeeper import ZooKeeperClient
from ottla.testing import CoordinationProcess

PATIENCE_SECONDS = 60


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinationProcess]:
    with CoordinationProcess(tmp_path_factory.mktemp("coordination")) as process:
        yield process


class Zk:
    def __init__(self, server: str) -> None:
        self.server = server

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ottla", "zk", *arguments, "--server", self.server]

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(*arguments), input=stdin, capture_output=True, timeout=PATIENCE_SECONDS, check=False
        )

    def __call__(self, *arguments: str, stdin: bytes = b"") -> str:
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


@pytest.fixture
def zk(service: CoordinationProcess) -> Zk:
    return Zk(service.zookeeper)


def test_nodes_are_made_read_changed_and_removed(zk: Zk) -> None:
    assert zk("create", "-p", "/shop/config/limit", "100") == "/shop/config/limit\n"
    assert zk("get", "/shop/config/limit") == "100"
    zk("set", "/shop/config/limit", "-", stdin=b"\xff raw\n")
    assert zk.run("get", "/shop/config/limit").stdout == b"\xff raw\n"
    assert zk("ls", "/shop") == "config\n"
    assert json.loads(zk("ls", "/shop", "-o", "json")) == [{"name": "config"}]
    stat = json.loads(zk("stat", "/shop/config/limit", "-o", "json"))
    assert (stat["version"], stat["data_length"], stat["ephemeral_owner"]) == (1, 6, "0x0")
    assert zk("create", "--sequential", "/shop/job-") == "/shop/job-0000000001\n"
    tree = json.loads(zk("tree", "/shop", "-o", "json"))
    assert [row["path"] for row in tree] == [
        "/shop", "/shop/config", "/shop/config/limit", "/shop/job-0000000001",
    ]  # fmt: skip
    assert zk("tree", "/shop").splitlines()[1:3] == ["  config", "    limit  \\xff raw"]
    assert "4 nodes deleted (not done)" in zk("rm", "-r", "--dry-run", "/shop")
    zk("rm", "-r", "--yes", "/shop")
    assert zk("ls", "/") == "zookeeper\n"


def test_access_lists_are_shown_and_changed(zk: Zk) -> None:
    zk("create", "/guarded")
    rows = json.loads(zk("acl", "/guarded", "--set", "world:anyone:ra", "-o", "json"))
    assert rows == [{"scheme": "world", "id": "anyone", "permissions": "ra"}]
    refused = zk.run("set", "/guarded", "x")
    assert refused.returncode == 1
    assert b"/guarded: its access list does not allow that" in refused.stderr
    assert zk.run("acl", "/guarded", "--set", "world:r").returncode == 2


def test_what_is_not_there_has_an_exit_code_of_its_own(zk: Zk) -> None:
    missing = zk.run("get", "/nowhere")
    assert (missing.returncode, missing.stderr) == (4, b"ottla: /nowhere: there is no such node\n")
    stale = zk.run("set", "/zookeeper/quota", "x", "--version", "7")
    assert stale.returncode == 1
    assert b"another version" in stale.stderr


def test_nobody_there_is_said_with_a_cure() -> None:
    done = Zk("127.0.0.1:1").run("ls", "/")
    assert done.returncode == 3
    assert b"no ZooKeeper answers at 127.0.0.1:1" in done.stderr
    assert b"ottla coordination up" in done.stderr


def test_watch_prints_changes_as_they_happen(zk: Zk, service: CoordinationProcess) -> None:
    host, _, port = service.zookeeper.rpartition(":")
    zk("create", "/live")
    command = zk.command("watch", "/live", "--count", "3", "-o", "json")
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        ZooKeeperClient(host, int(port)) as client,
    ):
        # The watch is there when the service counts it.
        while not _is_watched(service.zookeeper):
            assert process.poll() is None
        client.create("/live/a", b"1")
        client.set("/live/a", b"2")
        client.delete("/live/a")
        assert process.stdout is not None
        rows = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_SECONDS) == 0
    assert [(row["event"], row["path"]) for row in rows] == [
        ("created", "/live/a"), ("changed", "/live/a"), ("deleted", "/live/a"),
    ]  # fmt: skip


def _is_watched(address: str) -> bool:
    import socket

    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as peer:
        peer.sendall(b"wchs")
        with peer.makefile() as answer:
            return "Total watches:0" not in answer.read()


def test_a_second_service_says_that_the_port_or_the_data_is_taken(
    service: CoordinationProcess, tmp_path: Path
) -> None:
    port = service.zookeeper.rpartition(":")[2]
    command = [sys.executable, "-m", "ottla", "coordination", "up", "--port"]
    on_port = subprocess.run(
        [*command, port, "--data", str(tmp_path)], capture_output=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert on_port.returncode == 1
    assert f"cannot listen on ZOOKEEPER://127.0.0.1:{port}".encode() in on_port.stderr
    assert b"set clientPort to another port" in on_port.stderr
    on_data = subprocess.run(
        [*command, "0", "--data", str(service.data_dir / "tree")],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert on_data.returncode == 1
    assert b"another process uses the data in" in on_data.stderr
