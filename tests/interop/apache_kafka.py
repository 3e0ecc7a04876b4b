"""A real Apache Kafka from the jars that Maven brought: one node, broker and controller, or two."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from interop.builds import java_command
from ottla.client import Admin, ClientError

_START_SECONDS_MAX = 180


@contextmanager
def apache_kafka(
    folder: Path,
    settings: Mapping[str, str] | None = None,
    secured: Mapping[str, int] | None = None,
    users: Sequence[str] = (),
) -> Iterator[str]:
    """Its host:port, for as long as it runs.

    `secured` has ports of more listeners by their protocols; `users` log in by SCRAM, as its format tool
    takes them (SCRAM-SHA-256=[name=…,password=…]).
    """
    port, raft_port = free_port(), free_port()
    more = "".join(f",{name}://localhost:{each}" for name, each in (secured or {}).items())
    protocols = "".join(f",{name}:{name}" for name in secured or {})
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{raft_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{raft_port}{more}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{raft_port}{more}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT{protocols}",
        **(settings or {}),
    }
    to_format = ["--standalone", *(word for user in users for word in ("--add-scram", user))]
    with _node(folder, properties, _new_cluster_id(), to_format) as server:
        _await(f"127.0.0.1:{port}", server, folder / "output", 1)
        yield f"127.0.0.1:{port}"


@contextmanager
def apache_kafka_in_two_racks(folder: Path) -> Iterator[str]:
    """Broker 1 in the rack `far`, whose address this is, and 2 in `near`; they serve readers nearby."""
    port, raft_port, near_port = free_port(), free_port(), free_port()
    both = {
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{raft_port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }
    far = {
        **both,
        "process.roles": "broker,controller",
        "node.id": "1",
        "broker.rack": "far",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{raft_port}",
    }
    near = {
        **both,
        "process.roles": "broker",
        "node.id": "2",
        "broker.rack": "near",
        "listeners": f"PLAINTEXT://127.0.0.1:{near_port}",
    }
    cluster_id = _new_cluster_id()
    with (
        _node(folder / "far", far, cluster_id, ["--standalone"]),
        _node(folder / "near", near, cluster_id, ["--no-initial-controllers"]) as second,
    ):
        _await(f"127.0.0.1:{port}", second, folder / "near" / "output", 2)
        yield f"127.0.0.1:{port}"


def _new_cluster_id() -> str:
    # The first byte keeps it from beginning with a dash, which its tool would take for an option.
    return base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")


@contextmanager
def _node(
    folder: Path, settings: Mapping[str, str], cluster_id: str, to_format: Sequence[str]
) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir(exist_ok=True)
    properties = folder / "server.properties"
    common = {
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in {**common, **settings}.items()))
    subprocess.run(
        [
            *java_command(),
            "kafka.tools.StorageTool",
            *("format", "--cluster-id", cluster_id, "--config", str(properties), *to_format),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(
            [*java_command(), "-Xmx512m", "kafka.Kafka", str(properties)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield server
    finally:
        server.terminate()
        server.wait(60)


def _await(bootstrap: str, server: subprocess.Popen[bytes], output: Path, brokers: int) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            with Admin(bootstrap, default_api_timeout_ms=5_000) as admin:
                if len(admin.cluster().brokers) == brokers:
                    return
        except ClientError:
            pass
        assert server.poll() is None, output.read_text()[-4000:]
        assert time.monotonic() < deadline, output.read_text()[-4000:]
        time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
