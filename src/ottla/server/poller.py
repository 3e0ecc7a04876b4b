"""Which sockets are ready. epoll where it is, the standard library's best selector elsewhere.

Both are level triggered and speak in the same bits, so the reactor does not know which one it has.
"""

from __future__ import annotations

import select
import selectors
from typing import Protocol

READABLE = 1
WRITABLE = 2
BROKEN = 4  # reset or hung up: reported whether asked for or not
HANGUP = 8  # the peer sends no more; only for those whose bytes are not read (where the platform can tell)

_ONLY_READABLE: int = getattr(select, "EPOLLIN", 0)
EVENTS_PER_TURN_MAX = 512  # bounds a turn; what is left is reported again, in turn


class Poller(Protocol):
    def register(self, fd: int, interest: int) -> None: ...

    def modify(self, fd: int, interest: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout_ms: int | None) -> list[tuple[int, int]]:
        """Ready descriptors with their bits; None waits for ever."""
        ...

    def close(self) -> None: ...


class EpollPoller:
    def __init__(self) -> None:
        self._epoll = select.epoll()

    @staticmethod
    def _mask(interest: int) -> int:
        mask = 0
        if interest & READABLE:
            mask |= select.EPOLLIN | select.EPOLLRDHUP
        if interest & WRITABLE:
            mask |= select.EPOLLOUT
        if interest & HANGUP:
            mask |= select.EPOLLRDHUP
        return mask

    def register(self, fd: int, interest: int) -> None:
        self._epoll.register(fd, self._mask(interest))

    def modify(self, fd: int, interest: int) -> None:
        self._epoll.modify(fd, self._mask(interest))

    def unregister(self, fd: int) -> None:
        self._epoll.unregister(fd)

    def poll(self, timeout_ms: int | None) -> list[tuple[int, int]]:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        ready = []
        for fd, mask in self._epoll.poll(timeout, EVENTS_PER_TURN_MAX):
            if mask == _ONLY_READABLE:  # nearly always
                ready.append((fd, READABLE))
                continue
            bits = 0
            if mask & select.EPOLLIN:
                bits = READABLE
            elif mask & select.EPOLLRDHUP:
                bits = HANGUP
            if mask & select.EPOLLOUT:
                bits |= WRITABLE
            if mask & (select.EPOLLERR | select.EPOLLHUP):
                bits |= BROKEN
            ready.append((fd, bits))
        return ready

    def close(self) -> None:
        self._epoll.close()


class PortablePoller:
    """kqueue, poll or select: whatever the platform has."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._silent: set[int] = (
            set()
        )  # registered with us, but with no interest (selectors know no such thing)

    @staticmethod
    def _events(interest: int) -> int:
        events = 0
        if interest & READABLE:
            events |= selectors.EVENT_READ
        if interest & WRITABLE:
            events |= selectors.EVENT_WRITE
        return events

    def register(self, fd: int, interest: int) -> None:
        events = self._events(interest)
        if events:
            self._selector.register(fd, events)
        else:
            self._silent.add(fd)

    def modify(self, fd: int, interest: int) -> None:
        events = self._events(interest)
        if fd in self._silent:
            if events:
                self._silent.discard(fd)
                self._selector.register(fd, events)
        elif events:
            self._selector.modify(fd, events)
        else:
            self._selector.unregister(fd)
            self._silent.add(fd)

    def unregister(self, fd: int) -> None:
        if fd in self._silent:
            self._silent.discard(fd)
        else:
            self._selector.unregister(fd)

    def poll(self, timeout_ms: int | None) -> list[tuple[int, int]]:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        ready = []
        for key, events in self._selector.select(timeout)[:EVENTS_PER_TURN_MAX]:
            bits = READABLE if events & selectors.EVENT_READ else 0
            if events & selectors.EVENT_WRITE:
                bits |= WRITABLE
            ready.append((key.fd, bits))
        return ready

    def close(self) -> None:
        self._selector.close()


def best_poller() -> Poller:
    return EpollPoller() if hasattr(select, "epoll") else PortablePoller()
