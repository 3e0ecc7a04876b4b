"""What a test wants to go wrong on the wire: a list that the broker takes from, request by request. Pure.

Faults are added from one thread (a test, or the one that listens to it) and taken by the broker's owner.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ottla.model.errors import ErrorCode
from ottla.protocol.apis import APIS


class FaultKind(StrEnum):
    FAIL = "fail"  # answered with an error; the broker never sees the request
    DELAY = "delay"  # the request is taken up later, and what is behind it on its connection too
    DISCONNECT = "disconnect"  # the connection ends; the broker never sees the request
    LOSE_ANSWER = "lose_answer"  # the broker does its work, and the connection ends instead of an answer
    CORRUPT = "corrupt"  # the answer's bytes are noise behind the correlation id
    STALL = "stall"  # neither this request nor any behind it on its connection is ever answered


@dataclass(slots=True)
class Fault:
    api: str  # as Kafka writes it
    kind: FaultKind
    times: int | None = 1  # how many requests are still to meet it; None: all
    error: str = "NONE"
    delay_ms: int = 0
    client_id: str | None = None  # only requests of this one
    id: int = 0

    def __post_init__(self) -> None:
        self.kind = FaultKind(self.kind)
        _known(self.api, [api.name for api in APIS.values()], "API")
        _known(self.error, ErrorCode.__members__, "error")
        if self.times is not None and self.times < 1:
            raise ValueError(f"a fault happens at least once, not {self.times} times")

    @property
    def code(self) -> ErrorCode:
        return ErrorCode[self.error]


def _known(name: str, names: Iterable[str], what: str) -> None:
    known = list(names)
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 3, 0.5)
        cure = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        raise ValueError(f"there is no {what} {name!r}{cure}")


class Faults:
    def __init__(self) -> None:
        self.api_keys: frozenset[int] = frozenset()  # those that something waits for; read without the lock
        self._faults: list[Fault] = []
        self._last_id = 0
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> int:
        """Returns the id to ask for it by."""
        with self._lock:
            self._last_id += 1
            fault.id = self._last_id
            self._faults.append(fault)
            self._note_keys()
            return fault.id

    def cancel(self, fault_id: int | None = None) -> None:
        """This one, or all."""
        with self._lock:
            self._faults = [each for each in self._faults if fault_id not in (None, each.id)]
            self._note_keys()

    def left(self, fault_id: int | None = None) -> int:
        """How many requests are still to meet it (all of them); -1: every one that comes."""
        with self._lock:
            times = [each.times for each in self._faults if fault_id in (None, each.id)]
        return -1 if None in times else sum(each for each in times if each is not None)

    def take(self, api_key: int, client_id: str | None) -> Fault | None:
        """What happens to this request; the oldest fault comes first."""
        name = APIS[api_key].name
        with self._lock:
            for fault in self._faults:
                if fault.api == name and fault.client_id in (None, client_id):
                    self._use(fault)
                    return fault
        return None

    def give_back(self, fault: Fault) -> None:
        """It could not happen to the request it was taken for."""
        with self._lock:
            if fault.times is not None:
                fault.times += 1
            if fault not in self._faults:
                self._faults.insert(0, fault)
            self._note_keys()

    def _use(self, fault: Fault) -> None:
        if fault.times is not None:
            fault.times -= 1
            if fault.times == 0:
                self._faults.remove(fault)
                self._note_keys()

    def _note_keys(self) -> None:
        names = {fault.api for fault in self._faults}
        self.api_keys = frozenset(key for key, api in APIS.items() if api.name in names)
