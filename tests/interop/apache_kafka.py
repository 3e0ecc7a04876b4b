"""A real Apache Kafka, one node that is broker and controller, from the jars that Maven brought."""

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
    properties = folder / "server.properties"
    properties.write_text(
        f"""
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{raft_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{raft_port}{more}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{raft_port}{more}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT{protocols}
log.dirs={folder / "data"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
        + "".join(f"{name}={value}\n" for name, value in (settings or {}).items())
    )
    # The first byte keeps it from beginning with a dash, which its tool would take for an option.
    cluster_id = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
    subprocess.run(
        [
            *java_command(),
            "kafka.tools.StorageTool",
            *("format", "--standalone", "--cluster-id", cluster_id, "--config", str(properties)),
            *(word for user in users for word in ("--add-scram", user)),
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
        _await(f"127.0.0.1:{port}", server, folder / "output")
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _await(bootstrap: str, server: subprocess.Popen[bytes], output: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            with Admin(bootstrap, default_api_timeout_ms=5_000) as admin:
                if admin.cluster().brokers:
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
