"""What others have for the owner's thread to do, and the byte in a socket that ends its wait.

Signal handlers put things here too, in the middle of anything the owner does: so there is no lock.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque
from collections.abc import Callable


class Mailbox:
    __slots__ = ("_bell", "_is_rung", "_ringer", "actions")

    def __init__(self) -> None:
        self.actions: deque[Callable[[], None]] = deque()  # not run yet
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._ringer.setblocking(False)
        self._is_rung = False  # a byte is on its way

    def fileno(self) -> int:
        """Readable when there is something new."""
        return self._bell.fileno()

    def ring_fileno(self) -> int:
        """A byte written there ends the owner's wait, for who has nothing to be run: the owner looks."""
        return self._ringer.fileno()

    def post(self, action: Callable[[], None]) -> None:
        """Runs `action` on the owner's thread in its next turn. Any thread may call it."""
        self.actions.append(action)
        if not self._is_rung:
            self._is_rung = True
            with contextlib.suppress(OSError):  # full: it is awake anyway; closed: nobody waits any more
                self._ringer.send(b"\0")

    def silence(self) -> None:
        """The owner is awake. Before it runs what is there: what comes later rings again."""
        with contextlib.suppress(BlockingIOError):
            self._bell.recv(4096)
        self._is_rung = False

    def run(self) -> None:
        """What is there now; what that posts has to wait for the next turn."""
        for _ in range(len(self.actions)):
            self.actions.popleft()()

    def close(self) -> None:
        self._bell.close()
        self._ringer.close()
