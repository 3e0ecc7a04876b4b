"""The test's side of faults: what a broker for tests can be told to do wrong, whoever its clients are.

    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    with broker.delay("Fetch", seconds=0.5, times=None): ...
    broker.disconnect("Produce")                     before the broker has seen the request
    broker.disconnect("Produce", after=True)         when the work is done: the answer is lost
    broker.corrupt("Fetch")                          the answer's bytes are noise
    broker.stall("Fetch")                            the connection goes silent

Each meets the next requests of that API (`times` of them; None: all until it is cancelled).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Protocol, Self

from ottla.model.errors import ErrorCode
from ottla.testing.faults import Fault, FaultKind


class FaultControl(Protocol):
    """The faults of a broker, in this process or in another."""

    def add(self, fault: Fault) -> int: ...
    def cancel(self, fault_id: int | None = None) -> None: ...
    def left(self, fault_id: int | None = None) -> int: ...


class Injected:
    """One fault that was asked for. As a context manager it ends with its block."""

    def __init__(self, control: FaultControl, fault_id: int) -> None:
        self._control = control
        self._id = fault_id

    @property
    def left(self) -> int:
        """How many requests are still to meet it; -1: all."""
        return self._control.left(self._id)

    def cancel(self) -> None:
        self._control.cancel(self._id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()


class FaultInjection(ABC):
    """What brokers for tests have in common."""

    @property
    @abstractmethod
    def fault_control(self) -> FaultControl: ...

    def fail(
        self, api: str, error: str | ErrorCode, times: int | None = 1, *, client_id: str | None = None
    ) -> Injected:
        """These requests are answered with the error; the broker does nothing of what they ask."""
        name = error.name if isinstance(error, ErrorCode) else error
        return self._inject(Fault(api, FaultKind.FAIL, times, error=name, client_id=client_id))

    def delay(
        self, api: str, seconds: float, times: int | None = 1, *, client_id: str | None = None
    ) -> Injected:
        """These requests are taken up that much later, and so is what is behind them on their connection."""
        delay_ms = max(1, round(seconds * 1000))
        return self._inject(Fault(api, FaultKind.DELAY, times, delay_ms=delay_ms, client_id=client_id))

    def disconnect(
        self, api: str, times: int | None = 1, *, after: bool = False, client_id: str | None = None
    ) -> Injected:
        """The connection ends; with `after` when the broker has done the work, so only the answer is lost."""
        kind = FaultKind.LOSE_ANSWER if after else FaultKind.DISCONNECT
        return self._inject(Fault(api, kind, times, client_id=client_id))

    def corrupt(self, api: str, times: int | None = 1, *, client_id: str | None = None) -> Injected:
        """The broker does its work, and its answer arrives as noise."""
        return self._inject(Fault(api, FaultKind.CORRUPT, times, client_id=client_id))

    def stall(self, api: str, times: int | None = 1, *, client_id: str | None = None) -> Injected:
        """The request's connection stays open and goes silent, as behind a firewall that forgot it."""
        return self._inject(Fault(api, FaultKind.STALL, times, client_id=client_id))

    @property
    def faults_left(self) -> int:
        """How many requests are still to meet a fault; -1: all of some kind."""
        return self.fault_control.left()

    def heal(self) -> None:
        """Forgets all faults that have not happened yet."""
        self.fault_control.cancel()

    def _inject(self, fault: Fault) -> Injected:
        return Injected(self.fault_control, self.fault_control.add(fault))
