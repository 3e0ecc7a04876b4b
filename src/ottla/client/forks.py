"""Clients in a forked child: their sockets and threads are the parent's, so the child may not use them.

Two processes on one connection would take each other's answers; a producer's thread is not in the child at
all, and its records would wait for ever.
"""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

from ottla.client.errors import Misused

_clients: WeakSet[Any] = WeakSet()  # shells of this process
_PARTS = ("_calls", "_intake", "_cluster")  # by which they reach sockets and threads


class _Forked:
    """In the place of the parts of a parent's client: closed, and of no use."""

    is_closed = _is_closed = True

    def close(self) -> None:
        """Also to take a socket out of the selector would take it out of the parent's."""

    def __getattr__(self, name: str) -> Any:
        raise Misused(
            "this client belongs to the process that this one was forked from", "make one in each process"
        )


def stays_with_its_process(client: object) -> None:
    _clients.add(client)


def _leave_to_the_parent() -> None:
    for client in list(_clients):
        if hasattr(client, "_user"):
            client._user = threading.RLock()  # another thread may have had it
        for part in _PARTS:
            if hasattr(client, part):
                setattr(client, part, _Forked())
    _clients.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
