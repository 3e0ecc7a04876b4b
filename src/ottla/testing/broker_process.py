"""A real broker in a process of its own, for as long as a `with` block lasts.

    with BrokerProcess() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It listens on loopback, on a port that the system chose, and keeps its data in a temporary directory unless it
is given one. `kill` ends it as a crash would; `start` brings it back on the same data and port.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

_POLL_SECONDS = 0.005


class BrokerDied(RuntimeError):
    """The process ended before it was ready; the message has what it printed."""


class BrokerProcess:
    def __init__(
        self,
        data_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="ottla-"))
        self.settings = dict(settings or {})
        self.log_file = self.data_dir / "broker.out"
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._listeners: dict[str, str] = {}
        self.http: str | None = None  # host:port of /metrics, /healthz and /readyz

    # -- the broker ----------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """host:port of the first listener."""
        return next(iter(self._listeners.values()))

    def address(self, listener: str) -> str:
        """host:port of a listener by its name."""
        return self._listeners[listener]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def output(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    # -- its life ------------------------------------------------------------------------------------------

    def start(self, timeout_seconds: float = 30) -> BrokerProcess:
        """Returns when the broker answers."""
        assert not self.running, "the broker is running already"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        ready_file = self.data_dir / "coordination" / "broker.json"
        ready_file.unlink(missing_ok=True)
        with self.log_file.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(), stdout=output, stderr=subprocess.STDOUT, env=self._env
            )
        deadline = time.monotonic() + timeout_seconds
        while not ready_file.exists():
            if self._process.poll() is not None:
                raise BrokerDied(f"the broker ended with {self._process.returncode}:\n{self.output()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerDied(f"the broker was not ready in {timeout_seconds} s:\n{self.output()}")
            time.sleep(_POLL_SECONDS)
        ready = json.loads(ready_file.read_text())
        self._listeners, self.http = ready["listeners"], ready["http"]
        return self

    def _command(self) -> list[str]:
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "ottla.http.port": "0", **self.settings}
        if self._listeners and "listeners" not in self.settings:
            settings["listeners"] = f"PLAINTEXT://{self.bootstrap}"  # clients find it again after a restart
        command = [sys.executable, "-m", "ottla", "up", "--data", str(self.data_dir)]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        return command

    def stop(self, timeout_seconds: float = 30) -> int:
        """A clean stop (SIGTERM). Returns the exit code."""
        return self._end(signal.SIGTERM, timeout_seconds)

    def kill(self) -> int:
        """kill -9."""
        return self._end(signal.SIGKILL, 30)

    def _end(self, signal_number: int, timeout_seconds: float) -> int:
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal_number)
        return self._process.wait(timeout_seconds)

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.running:
            self.kill() if error is not None else self.stop()
        if self._temporary and error is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
