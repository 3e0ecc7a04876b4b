"""The purgatory: requests that wait for an event or for their time to run out, without holding a thread.

A waiter sits under the keys (topic id, partition, event) it depends on. `notify` only marks; `settle`, once
per turn, tries each marked waiter once, so a hundred appends in one turn wake a parked fetch once. The cost
of an event is that of the waiters under its own key, never of all that is parked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.model.topics import TopicId
from ottla.model.values import NamedTuple
from ottla.replica.events import Event
from ottla.server.timers import Timer, Timers


class ParkingKey(NamedTuple):
    topic_id: TopicId
    partition: int
    event: Event


class Waiter:
    __slots__ = ("attempt", "expire", "fail", "keys", "marked", "timer")

    def __init__(
        self,
        keys: Sequence[ParkingKey],
        attempt: Callable[[], bool],
        expire: Callable[[], None],
        fail: Callable[[Exception], None],
    ) -> None:
        self.keys = keys
        self.attempt = attempt  # answers the request and returns True, or returns False to wait on
        self.expire = expire  # answers the request because its time is up
        self.fail = fail  # one of the two raised, which is a bug of ours: only this request may suffer
        self.timer: Timer | None = None
        self.marked = False


class Parking:
    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._by_key: dict[ParkingKey, dict[Waiter, None]] = {}
        self._marked: list[Waiter] = []
        self._waiters: dict[Waiter, None] = {}

    def __len__(self) -> int:
        return len(self._waiters)

    def park(
        self,
        keys: Sequence[ParkingKey],
        deadline_ms: int,
        attempt: Callable[[], bool],
        expire: Callable[[], None],
        fail: Callable[[Exception], None],
    ) -> Waiter:
        """The caller has just found `attempt` to be False; events from here on are not missed."""
        waiter = Waiter(tuple(dict.fromkeys(keys)), attempt, expire, fail)  # it may name a partition twice
        for key in waiter.keys:
            self._by_key.setdefault(key, {})[waiter] = None
        self._waiters[waiter] = None
        waiter.timer = self._timers.set(deadline_ms, lambda: self._expire(waiter))
        return waiter

    def notify(self, key: ParkingKey) -> None:
        for waiter in self._by_key.get(key, ()):
            if not waiter.marked:
                waiter.marked = True
                self._marked.append(waiter)

    def notify_gone(self, topic_id: TopicId, partition: int) -> None:
        """The partition moved away or was deleted: whatever waits for any of its events is tried now."""
        for event in Event:
            self.notify(ParkingKey(topic_id, partition, event))

    def settle(self) -> None:
        while self._marked:  # an answer may cause the next event
            marked, self._marked = self._marked, []
            for waiter in marked:
                waiter.marked = False
                if waiter in self._waiters:
                    self._try(waiter)

    def forget(self, waiter: Waiter) -> None:
        """Takes a waiter out without answering: it was answered, or its connection is gone."""
        if self._waiters.pop(waiter, self) is self:
            return
        for key in waiter.keys:
            waiters = self._by_key[key]
            del waiters[waiter]
            if not waiters:
                del self._by_key[key]
        if waiter.timer is not None:
            self._timers.cancel(waiter.timer)

    def expire_all(self) -> None:
        """At shutdown: everybody gets the answer of a timeout now."""
        for waiter in list(self._waiters):
            self._expire(waiter)

    def _try(self, waiter: Waiter) -> None:
        try:
            if waiter.attempt():
                self.forget(waiter)
        except Exception as error:
            self.forget(waiter)
            waiter.fail(error)

    def _expire(self, waiter: Waiter) -> None:
        self.forget(waiter)
        try:
            waiter.expire()
        except Exception as error:
            waiter.fail(error)
