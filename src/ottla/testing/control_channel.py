"""The line between a test and the broker it started: faults go down, and its end ends the broker.

A socket pair that only these two processes hold: no address, no port, nothing a stranger could reach. One
JSON line each way per call.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from dataclasses import asdict
from typing import Any

from ottla.testing.faults import Fault, Faults


class RemoteFaults:
    """The test's end."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._lines = peer.makefile("rb")
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> int:
        return self._call("add", asdict(fault))

    def cancel(self, fault_id: int | None = None) -> None:
        self._call("cancel", fault_id)

    def left(self, fault_id: int | None = None) -> int:
        return self._call("left", fault_id)

    def close(self) -> None:
        self._lines.close()
        self._peer.close()

    def _call(self, name: str, argument: Any) -> int:
        try:
            with self._lock:
                self._peer.sendall(json.dumps([name, argument]).encode() + b"\n")
                answer = self._lines.readline()
        except OSError:
            answer = b""
        if not answer:
            raise ConnectionError("the broker is not running; start it before it is told of faults")
        result: int = json.loads(answer)
        return result


def listen(peer: socket.socket, faults: Faults) -> None:
    """The broker's end, on a thread of its own."""

    def serve() -> None:
        for line in peer.makefile("rb"):
            name, argument = json.loads(line)
            result = 0
            if name == "add":
                result = faults.add(Fault(**argument))
            elif name == "cancel":
                faults.cancel(argument)
            else:
                result = faults.left(argument)
            peer.sendall(json.dumps(result).encode() + b"\n")
        os.kill(os.getpid(), signal.SIGTERM)  # whoever wanted this broker is gone

    threading.Thread(target=serve, name="test control", daemon=True).start()
