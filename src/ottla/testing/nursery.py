"""Where brokers for tests come from: a warm process, one per test process, that forks them in no time.

Most of a broker's start is imports; here they happen once. `warm` begins them early, beside other work.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence

SIZE = struct.Struct(">I")  # of a request, before it

_lock = threading.Lock()
_nurseries: dict[int, Nursery] = {}  # by process id: a forked test must not share its parent's


class NurseryChild:
    """A process that the nursery forked; as much of `Popen` as its owner needs."""

    def __init__(self, status: int) -> None:
        self.returncode: int | None = None
        self._status = status
        self._buffer = b""
        first = self._line(None)
        if not first:
            raise ChildProcessError("the process that starts brokers has ended; its errors are above")
        self.pid = int(first)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            line = self._line(timeout)
            self.returncode = int(line) if line else -signal.SIGKILL  # gone with the nursery
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def _line(self, timeout: float | None) -> bytes:
        while b"\n" not in self._buffer:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("ottla", timeout or 0)
            data = os.read(self._status, 64)
            if not data:
                return b""
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


class Nursery:
    def __init__(self) -> None:
        self._peer, theirs = socket.socketpair()
        command = [sys.executable, "-m", "ottla.testing.nursery_main", str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, arguments: Sequence[str], output_fd: int, control_fd: int) -> NurseryChild:
        request = {"arguments": list(arguments), "folder": os.getcwd(), "environment": dict(os.environ)}
        body = json.dumps(request).encode()
        status, their_status = os.pipe()
        try:
            with _lock:
                socket.send_fds(self._peer, [SIZE.pack(len(body))], [output_fd, control_fd, their_status])
                self._peer.sendall(body)
        finally:
            os.close(their_status)
        return NurseryChild(status)

    def close(self) -> None:
        self._peer.close()
        self._process.wait()

    def let_go(self) -> None:
        """It has ended, or it is the nursery of the process that this one was forked from."""
        self._peer.close()
        self._process.returncode = self._process.returncode or 0  # it is not this process's to wait for


def nursery() -> Nursery:
    with _lock:
        known = _nurseries.get(os.getpid())
        if known is None or not known.is_alive:
            for other in _nurseries.values():
                other.let_go()
            _nurseries.clear()
            known = _nurseries[os.getpid()] = Nursery()
        return known


def warm() -> None:
    """Has the imports of the first broker happen from now on, in the background."""
    nursery()


@atexit.register
def _close() -> None:
    known = _nurseries.pop(os.getpid(), None)
    if known is not None:
        known.close()
