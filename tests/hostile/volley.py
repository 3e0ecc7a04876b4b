"""Many hostile connections at once: each sends its bytes, then a decent request, and its fate is noted."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from hostile.peer import request_bytes
from ottla.protocol import apis
from ottla.protocol.messages.api_versions import ApiVersionsRequest

CONNECTIONS_AT_ONCE = 40  # fewer than socket.listen.backlog.size: beyond it a connect takes a second
_PROBE_ID = 0x0DDBA115
_PROBE = request_bytes(apis.API_VERSIONS, 0, ApiVersionsRequest(), correlation_id=_PROBE_ID)


class Fate(Enum):
    CLOSED = "the broker closed the connection"
    ANSWERED = "the broker went on with the next request"
    SILENT = "neither in time"


@dataclass
class Shot:
    """One connection's bytes and what came of them."""

    label: str
    payload: bytes
    patience_seconds: float = 10  # generous: all other shots' fates are known long before
    fate: Fate = Fate.SILENT
    port: int = 0
    answers: list[bytes] = field(default_factory=list)  # frames before the probe's


class _Flight:
    def __init__(self, shot: Shot, address: tuple[str, int]) -> None:
        self.shot = shot
        self.deadline = time.monotonic() + shot.patience_seconds
        self.socket = socket.create_connection(address)
        self.socket.setblocking(False)
        shot.port = self.socket.getsockname()[1]
        self.unsent = memoryview(shot.payload + _PROBE)
        self.received = bytearray()

    def push(self) -> None:
        try:
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
        except BlockingIOError:
            pass
        except ConnectionError:
            self.unsent = self.unsent[:0]  # closed before it was all out; an answer may still be there

    def pull(self) -> bool:
        """True when its fate is known."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.shot.fate = Fate.CLOSED
            return True
        self.received += data
        return self._probe_answered()

    def _probe_answered(self) -> bool:
        while len(self.received) >= 4:
            (size,) = struct.unpack_from(">i", self.received)
            if len(self.received) < 4 + size:
                return False
            frame = bytes(self.received[4 : 4 + size])
            del self.received[: 4 + size]
            if int.from_bytes(frame[:4], "big") == _PROBE_ID:
                self.shot.fate = Fate.ANSWERED
                return True
            self.shot.answers.append(frame)
        return False


def fire(address: str, shots: Iterable[Shot]) -> list[Shot]:
    """Sends every shot on a connection of its own, many at a time. Returns them with their fates."""
    host, port = address.rsplit(":", 1)
    waiting: Iterator[Shot] = iter(shots)
    flights: dict[int, _Flight] = {}
    done: list[Shot] = []
    with selectors.DefaultSelector() as selector:
        while True:
            while len(flights) < CONNECTIONS_AT_ONCE and (shot := next(waiting, None)) is not None:
                flight = _Flight(shot, (host, int(port)))
                flights[flight.socket.fileno()] = flight
                selector.register(flight.socket, selectors.EVENT_READ)
                flight.push()
            if not flights:
                return done
            ready = {key.fd for key, _ in selector.select(0.05)}
            now = time.monotonic()
            for fd, flight in list(flights.items()):
                flight.push()
                if (fd in ready and flight.pull()) or now > flight.deadline:
                    selector.unregister(flight.socket)
                    flight.socket.close()
                    del flights[fd]
                    done.append(flight.shot)
