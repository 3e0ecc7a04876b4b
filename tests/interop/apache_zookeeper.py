"""Real Apache ZooKeeper servers on loopback, for tests that must hold on somebody else's service."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interop.builds import zookeeper_command

_START_S = 60
_SERVER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ApacheZooKeeper:
    """One server of an ensemble (or the only one)."""

    def __init__(self, number: int, directory: Path, ports: dict[int, tuple[int, int, int]]) -> None:
        self.number = number
        self.port = ports[number][0]
        self.address = f"127.0.0.1:{self.port}"
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        directory.mkdir(parents=True)
        (directory / "myid").write_text(str(number))
        settings = [
            "tickTime=500",
            "initLimit=20",
            "syncLimit=10",
            f"dataDir={directory}",
            f"clientPort={self.port}",
            "clientPortAddress=127.0.0.1",
            "admin.enableServer=false",
            "4lw.commands.whitelist=*",
        ]
        if len(ports) > 1:
            settings += (
                f"server.{other}=127.0.0.1:{peer}:{election}" for other, (_, peer, election) in ports.items()
            )
        (directory / "zoo.cfg").write_text("\n".join(settings))

    def start(self) -> None:
        command = [*zookeeper_command(), _SERVER, str(self._directory / "zoo.cfg")]
        with (self._directory / "out").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self._directory)

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def mode(self) -> str | None:
        """`leader`, `follower` or `standalone`; None while it does not serve."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 2) as peer:
            peer.sendall(b"srvr")
            answer = b""
            while chunk := peer.recv(4096):
                answer += chunk
            for line in answer.decode().splitlines():
                if line.startswith("Mode: "):
                    return line.removeprefix("Mode: ")
        return None

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + _START_S
        while self.mode() is None:
            assert self._process is not None
            assert self._process.poll() is None, (self._directory / "out").read_text()[-4_000:]
            assert time.monotonic() < deadline, (self._directory / "out").read_text()[-4_000:]
            time.sleep(0.1)


class Ensemble:
    def __init__(self, servers: list[ApacheZooKeeper]) -> None:
        self.servers = servers

    @property
    def addresses(self) -> str:
        return ",".join(server.address for server in self.servers)

    def leader(self) -> ApacheZooKeeper:
        return next(server for server in self.servers if server.mode() in ("leader", "standalone"))


@contextmanager
def ensemble(directory: Path, servers: int = 3) -> Iterator[Ensemble]:
    """That many servers, all of them serving."""
    free = iter(_free_ports(3 * servers))
    ports = {number: (next(free), next(free), next(free)) for number in range(1, servers + 1)}
    started = [ApacheZooKeeper(number, directory / f"server-{number}", ports) for number in ports]
    try:
        for server in started:
            server.start()
        for server in started:
            server.wait_until_serving()
        yield Ensemble(started)
    finally:
        for server in started:
            server.kill()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
