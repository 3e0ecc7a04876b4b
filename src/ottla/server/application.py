"""What the frames of a listener mean: the seam between the reactor, which knows sockets, and a protocol."""

from __future__ import annotations

from typing import Any, Protocol

from ottla.protocol.frames import FrameCutter
from ottla.server.connection import Connection

Arrivals = list[tuple[Connection, list[Any]]]
"""Frames are what the application's own cutter gives: views of what was received, or bytes."""


class Application(Protocol):
    """What a listener's frames mean. Everything here runs on the owner thread."""

    def cutter(self, frame_bytes_max: int) -> FrameCutter:
        """The receiving end of a new connection: how its bytes are cut into frames."""
        ...

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        """All frames of a turn. Malformed ones close their connection through `Reactor.drop`.

        Frames that cannot be handled now are given back to their connection. Returns the connections that
        there was no time for at all: they come first in the next turn.
        """
        ...

    def disconnected(self, connection: Connection) -> None: ...
