"""Deadlines in a heap. Nothing ticks: the reactor sleeps until the earliest one.

A cancelled timer stays in the heap until it comes up or until half of the heap is cancelled,
so setting and cancelling are cheap however many wait (a parked fetch is usually cancelled, not expired).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Timer:
    __slots__ = ("action", "deadline_ms", "order")

    def __init__(self, deadline_ms: int, order: int, action: Callable[[], None]) -> None:
        self.deadline_ms = deadline_ms
        self.order = order  # ties fire in the order they were set
        self.action: Callable[[], None] | None = action

    def __lt__(self, other: Timer) -> bool:
        return (self.deadline_ms, self.order) < (other.deadline_ms, other.order)


class Timers:
    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._cancelled = 0
        self._order = 0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def set(self, deadline_ms: int, action: Callable[[], None]) -> Timer:
        self._order += 1
        timer = Timer(deadline_ms, self._order, action)
        heapq.heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        if timer.action is None:
            return
        timer.action = None
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled * 2 > len(self._heap):
            self._heap = [kept for kept in self._heap if kept.action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def next_deadline_ms(self) -> int | None:
        while self._heap:
            first = self._heap[0]
            if first.action is not None:
                return first.deadline_ms
            heapq.heappop(self._heap)
            self._cancelled -= 1
        return None

    def fire(self, now_ms: int) -> None:
        """Runs what is due. An action may set new timers; those that are due at once run in the next turn."""
        due: list[Timer] = []
        while self._heap:
            timer = self._heap[0]
            if timer.deadline_ms > now_ms:
                break
            heapq.heappop(self._heap)
            if timer.action is None:
                self._cancelled -= 1
            else:
                due.append(timer)
        for timer in due:
            action, timer.action = timer.action, None
            if action is not None:  # an earlier action of this round may have cancelled it
                action()
            else:
                self._cancelled -= 1
