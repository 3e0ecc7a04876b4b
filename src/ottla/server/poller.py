"""Which sockets are ready. epoll where it is, the standard library's best selector elsewhere.

Both are level triggered and speak in the same bits, so the reactor does not know which one it has. Of a peer
that sends no more there is HANGUP beside READABLE, too: who reads looks at that alone.
"""

from __future__ import annotations

import select
import selectors
from typing import Any, Protocol

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.exc import PyErr_CheckSignals, PyErr_SetFromErrno
    from cython.cimports.ottla.server import _system_calls as system

# The numbers are epoll's, so that nothing has to be translated in every turn.
READABLE = 0x001
WRITABLE = 0x004
BROKEN = 0x018  # reset or hung up: reported whether asked for or not
# The peer sends no more; asked for where its bytes are not read, if the platform can tell.
HANGUP = 0x2000

_WAIT_MS_MAX = 60_000  # of one call, which takes no more than 31 bits; who asked for longer asks again
_LOOKING_NS_MAX = 60_000  # as long as it takes a virtual core to sleep and be woken, about
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
        self._fd = self._epoll.fileno()
        self._usual_wait_ns = _LOOKING_NS_MAX  # moves with every wait
        self._was_alone = False  # the last turn had one descriptor: one peer, who asks when it was answered

    def register(self, fd: int, interest: int) -> None:
        self._epoll.register(fd, interest | HANGUP if interest & READABLE else interest)

    def modify(self, fd: int, interest: int) -> None:
        self._epoll.modify(fd, interest | HANGUP if interest & READABLE else interest)

    def unregister(self, fd: int) -> None:
        self._epoll.unregister(fd)

    def poll(self, timeout_ms: int | None) -> list[tuple[int, int]]:
        wait_ms = -1 if timeout_ms is None else min(timeout_ms, _WAIT_MS_MAX)
        if cython.compiled and system.HAS_EPOLL:
            return self._wait(wait_ms)
        return self._epoll.poll(wait_ms / 1000, EVENTS_PER_TURN_MAX)

    def _wait(self, timeout_ms: int) -> list[tuple[int, int]]:
        """The system's own call. What a signal's handler does is done before it returns."""
        events = cython.declare(system.Event[512])  # EVENTS_PER_TURN_MAX, which is no C number
        with cython.nogil:
            if timeout_ms:
                count = self._await(events, timeout_ms)
            else:
                count = system.wait_for_events(self._fd, events, 512, 0)
        self._was_alone = count == 1
        if count < 0:
            if system.errno != system.EINTR:
                PyErr_SetFromErrno(OSError)
            PyErr_CheckSignals()
            return []
        return [(system.event_fd(events[at]), system.event_bits(events[at])) for at in range(count)]

    def _await(self, events: Any, timeout_ms: int) -> int:
        """Where a lone peer usually asks again sooner than this thread could fall asleep and be woken, it
        looks for that long without sleeping. Others may run meanwhile; it stops when waits get longer.
        """
        began_ns = system.now_ns()
        waited_ns = 0
        count = 0
        if self._was_alone and self._usual_wait_ns < _LOOKING_NS_MAX:
            while count == 0 and waited_ns < _LOOKING_NS_MAX:
                count = system.wait_for_events(self._fd, events, 512, 0)
                if count == 0:
                    system.let_others_run()
                    waited_ns = system.now_ns() - began_ns
        if count == 0:
            count = system.wait_for_events(self._fd, events, 512, timeout_ms)
            waited_ns = min(
                system.now_ns() - began_ns, 4 * _LOOKING_NS_MAX
            )  # one long pause is soon forgotten
        self._usual_wait_ns += (waited_ns - self._usual_wait_ns) // 8
        return count

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
