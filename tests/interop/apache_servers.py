"""Apache ZooKeeper, and Apache Kafka 3.9 on it, as processes with everything below one folder."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from interop.builds import zookeeper_mode_command
from ottla.client import Admin, ClientError

_START_SECONDS = 120
_STOP_SECONDS = 120


class _Server:
    def __init__(self, folder: Path, main_class: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self._main_class = main_class
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def output(self) -> str:
        return (self.folder / "server.out").read_text(errors="replace")

    def start(self, *arguments: str) -> None:
        with (self.folder / "server.out").open("ab") as output:
            self._process = subprocess.Popen(
                [*zookeeper_mode_command(), self._main_class, *arguments],
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._listens() or not self._is_ready():
            assert self._process.poll() is None, self.output()[-4000:]
            assert time.monotonic() < deadline, self.output()[-4000:]
            time.sleep(0.1)

    def _is_ready(self) -> bool:
        """Once it listens."""
        return True

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def _end(self, signal_number: int) -> None:
        assert self._process is not None
        self._process.send_signal(signal_number)
        self._process.wait(_STOP_SECONDS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()


class ZooKeeper(_Server):
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, "org.apache.zookeeper.server.ZooKeeperServerMain")

    def __enter__(self) -> ZooKeeper:
        self.start(str(self.port), str(self.folder / "data"))
        return self


class Kafka39(_Server):
    """One broker with id 1 on a ZooKeeper, and on a log directory that may have been somebody else's."""

    def __init__(
        self, folder: Path, zookeeper: ZooKeeper | str, log_directory: Path, settings: Mapping[str, str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, "kafka.Kafka")
        lines = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(log_directory),
            "zookeeper.connect": zookeeper if isinstance(zookeeper, str) else zookeeper.address,
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "2",
            "offsets.topic.num.partitions": "2",
            "group.initial.rebalance.delay.ms": "0",
            **settings,
        }
        self._properties = folder / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))

    def __enter__(self) -> Kafka39:
        self.start(str(self._properties))
        return self

    def _is_ready(self) -> bool:
        """librdkafka asks for the controller once, and waits a minute if there was none yet."""
        try:
            with Admin(self.address, default_api_timeout_ms=5_000) as admin:
                cluster = admin.cluster()
        except ClientError:
            return False
        return cluster.controller_id in {broker.id for broker in cluster.brokers}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
