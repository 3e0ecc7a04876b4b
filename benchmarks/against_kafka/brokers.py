"""The brokers under test: started on a core of their own, stopped, started again. One process each."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from benchmarks.against_kafka.jars import kafka_classpath
from benchmarks.peer import Peer
from benchmarks.processes import SERVER_CORE, family, on_core

from ottla.testing import BrokerDied, BrokerProcess

_START_SECONDS_MAX = 300
_STOP_SECONDS_MAX = 300
_POLL_SECONDS = 0.005
_AWAKENING_SECONDS = 0.3  # timers that came due meanwhile have run


class Broker:
    """What the measurements know of a broker. Everything it writes is below `folder`."""

    name: str

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.settings = settings

    @property
    def pid(self) -> int:
        raise NotImplementedError

    @property
    def address(self) -> str:
        raise NotImplementedError

    def start(self) -> float:
        """Seconds until it first answered."""
        with on_core(SERVER_CORE):
            began = time.perf_counter()
            self._launch()
        deadline = began + _START_SECONDS_MAX
        while not self._answers():
            assert time.perf_counter() < deadline, f"{self.name} does not answer"
            time.sleep(_POLL_SECONDS)
        return time.perf_counter() - began

    def stop(self) -> None:
        """Cleanly, with its data left for another start."""
        raise NotImplementedError

    def kill(self) -> None:
        """If it runs."""
        raise NotImplementedError

    def pause(self) -> None:
        """It stands still, with all that it has in memory, and costs the others nothing."""
        self._signal(signal.SIGSTOP)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Its turn: it stood still before and does afterwards."""
        self._signal(signal.SIGCONT)
        time.sleep(_AWAKENING_SECONDS)
        try:
            yield
        finally:
            self.pause()

    def _signal(self, number: signal.Signals) -> None:
        for pid in family(self.pid):
            with suppress(ProcessLookupError):  # a child that has ended, or it died: its trial says so
                os.kill(pid, number)

    def discard(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _launch(self) -> None:
        raise NotImplementedError

    def _answers(self) -> bool:
        try:
            peer = Peer(self.address)
        except ConnectionRefusedError:
            return False
        peer.greet()
        peer.socket.close()
        return True


class _AsUsersStartIt(BrokerProcess):
    """`ottla up`, without what lets a test make its broker faulty."""

    def _launch(self) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as output:
            command = [sys.executable, "-m", "ottla", *self.arguments()]
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)


class Ottla(Broker):
    name = "Ottla"

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        super().__init__(folder, settings)
        self._process = _AsUsersStartIt(folder, settings)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> str:
        return self._process.bootstrap

    def _launch(self) -> None:
        self._process.start(_START_SECONDS_MAX)

    def stop(self) -> None:
        self._process.stop(_STOP_SECONDS_MAX)

    def kill(self) -> None:
        if self._process.running:
            self._process.kill()


class ApacheKafka(Broker):
    """One node that is broker and controller, with the options of the JVM that its own start script has."""

    name = "Apache Kafka"
    _JVM = (
        *("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
        *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
        "-Djava.awt.headless=true",
    )
    # What a lone node needs, as in the configuration that its release carries.
    _ALONE: ClassVar = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "broker.session.timeout.ms": "3600000",  # it may stand still while others are measured
    }

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        super().__init__(folder, settings)
        self._port, self._controller_port = _free_port(), _free_port()
        self._properties = folder / "server.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self._format()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def _format(self) -> None:
        self.folder.mkdir(parents=True)
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller_port}"
        properties = {
            **self._ALONE,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.folder / "data"),
            **self.settings,
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        # The first byte keeps it from beginning with a dash, which Kafka's tool would take for an option.
        cluster_id = base64.urlsafe_b64encode(b"\0" + os.urandom(15)).decode().rstrip("=")
        arguments = ["format", "--standalone", "--cluster-id", cluster_id, "--config", str(self._properties)]
        command = ["java", "-cp", kafka_classpath(), "kafka.tools.StorageTool", *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=_START_SECONDS_MAX)

    def _launch(self) -> None:
        command = ["java", *self._JVM, "-cp", kafka_classpath(), "kafka.Kafka", str(self._properties)]
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise BrokerDied(f"Apache Kafka ended:\n{(self.folder / 'output').read_text()[-4000:]}")
        return super()._answers()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_SECONDS_MAX)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(_STOP_SECONDS_MAX)


@contextmanager
def apache_kafka(settings: Iterable[str]) -> Iterator[ApacheKafka]:
    """One beside a benchmark that is not of this harness; settings as `name=value`."""
    with tempfile.TemporaryDirectory() as home:
        broker = ApacheKafka(Path(home) / "kafka", dict(each.split("=", 1) for each in settings))
        try:
            broker.start()
            yield broker
        finally:
            broker.discard()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
