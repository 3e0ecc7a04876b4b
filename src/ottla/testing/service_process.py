"""A service of ours in a process of its own: started, killed as a crash would, and started again.

It is forked from a warm process (`nursery`). Where it is to be `fresh`, or is given an environment, it starts
in an interpreter of its own, as `ottla up` does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ottla.testing.control_channel import RemoteFaults
from ottla.testing.nursery import NurseryChild, nursery

_POLL_SECONDS = 0.002


class BrokerDied(RuntimeError):
    """The process ended before it was ready; the message has what it printed."""


class ServiceProcess(ABC):
    """Keeps its data in a temporary directory unless it is given one. Subclasses say what is started."""

    def __init__(
        self,
        data_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self._temporary = data_dir is None
        self.data_dir = data_dir or Path(tempfile.mkdtemp(prefix="ottla-"))
        self.settings = dict(settings or {})
        self.log_file = self.data_dir / "broker.out"
        self._env = dict(env or {})
        self._fresh = fresh or bool(env)
        self._process: subprocess.Popen[bytes] | NurseryChild | None = None
        self._control: RemoteFaults | None = None
        self.announced: dict[str, Any] = {}  # what it said of itself when it was last ready

    @property
    @abstractmethod
    def ready_file(self) -> Path:
        """What the process writes when it serves."""

    @abstractmethod
    def arguments(self) -> list[str]:
        """Of the `ottla` program."""

    @property
    def zookeeper(self) -> str:
        """host:port for ZooKeeper clients."""
        address: str = self.announced["zookeeper"]
        return address

    @property
    def zookeeper_port(self) -> str:
        """For the command: the same after a restart, so that clients find it again."""
        return (self.announced.get("zookeeper") or ":0").rpartition(":")[2]

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

    def start(self, timeout_seconds: float = 30) -> Self:
        """Returns when it answers."""
        assert not self.running, "it is running already"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.ready_file.unlink(missing_ok=True)
        self._process = self._launch()
        deadline = time.monotonic() + timeout_seconds
        while not self.ready_file.exists():
            if self._process.poll() is not None:
                self._let_go()
                raise BrokerDied(f"the process ended with {self._process.returncode}:\n{self.output()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerDied(f"the process was not ready in {timeout_seconds} s:\n{self.output()}")
            time.sleep(_POLL_SECONDS)
        self.announced = json.loads(self.ready_file.read_text())
        return self

    def _launch(self) -> subprocess.Popen[bytes] | NurseryChild:
        self._let_go()
        ours, theirs = socket.socketpair()
        self._control = RemoteFaults(ours)
        with self.log_file.open("ab") as output, theirs:
            if not self._fresh:
                return nursery().fork(self.arguments(), output.fileno(), theirs.fileno())
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "ottla.testing.service_main"),
                    *(str(theirs.fileno()), *self.arguments()),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._env},
                pass_fds=[theirs.fileno()],
            )

    def _let_go(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None

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
        code = self._process.wait(timeout_seconds)
        self._let_go()
        return code

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.running:
            self.kill() if error is not None else self.stop()
        if self._temporary and error is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)
