"""Deadlines fire once, in order, and cost nothing when cancelled."""

from __future__ import annotations

import random

import pytest

from ottla.server.timers import Timer, Timers


def test_timers_fire_in_order_of_deadline_then_of_setting() -> None:
    timers = Timers()
    fired: list[str] = []
    timers.set(20, lambda: fired.append("late"))
    timers.set(10, lambda: fired.append("first"))
    timers.set(10, lambda: fired.append("second"))
    assert timers.next_deadline_ms() == 10
    timers.fire(9)
    assert fired == []
    timers.fire(10)
    assert fired == ["first", "second"]
    timers.fire(1_000)
    assert fired == ["first", "second", "late"]
    assert timers.next_deadline_ms() is None


def test_a_cancelled_timer_never_fires_and_leaves_the_heap() -> None:
    timers = Timers()
    fired: list[int] = []
    handles = [timers.set(deadline, lambda d=deadline: fired.append(d)) for deadline in range(1_000)]
    for handle in handles[:990]:
        timers.cancel(handle)
        timers.cancel(handle)  # twice is harmless
    assert len(timers) == 10
    assert len(timers._heap) < 200
    timers.fire(10_000)
    assert fired == list(range(990, 1_000))


def test_an_action_may_cancel_another_that_is_due_in_the_same_round() -> None:
    timers = Timers()
    fired: list[str] = []
    victim = None

    def first() -> None:
        fired.append("first")
        assert victim is not None
        timers.cancel(victim)

    timers.set(1, first)
    victim = timers.set(1, lambda: fired.append("victim"))
    timers.fire(1)
    timers.fire(2)
    assert fired == ["first"]
    assert len(timers) == 0


@pytest.mark.parametrize("seed", range(50))
def test_any_sequence_of_set_cancel_and_fire_equals_a_sorted_list(seed: int) -> None:
    choose = random.Random(seed)
    timers = Timers()
    fired: list[int] = []
    waiting: dict[int, Timer] = {}
    now = 0
    for number in range(300):
        action = choose.random()
        if action < 0.5:
            waiting[number] = timers.set(now + choose.randrange(50), lambda n=number: fired.append(n))
        elif action < 0.8 and waiting:
            timers.cancel(waiting.pop(choose.choice(list(waiting))))
        else:
            now += choose.randrange(20)
            fired.clear()
            timers.fire(now)
            due = sorted((timer.deadline_ms, n) for n, timer in waiting.items() if timer.deadline_ms <= now)
            assert fired == [n for _, n in due]
            for _, n in due:
                del waiting[n]
        assert len(timers) == len(waiting)
        assert timers.next_deadline_ms() == min((each.deadline_ms for each in waiting.values()), default=None)


def test_a_deadline_may_be_further_away_than_any_clock_reaches() -> None:
    timers = Timers()
    fired = []
    timers.set(2**63 + 5, lambda: fired.append("never"))
    timers.set(10, lambda: fired.append("soon"))
    assert timers.next_deadline_ms() == 10
    timers.fire(10)
    assert fired == ["soon"]
    assert timers.next_deadline_ms() == 2**63 + 5
