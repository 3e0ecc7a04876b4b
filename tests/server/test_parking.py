"""What is parked completes on its event or its deadline, exactly once, at the cost of its own key only."""

from __future__ import annotations

import pytest

from ottla.model.topics import TopicId
from ottla.replica.events import Event
from ottla.server.parking import Parking, ParkingKey
from ottla.server.timers import Timers

TOPIC = TopicId(b"t" * 16)


def key(partition: int = 0, event: Event = Event.HIGH_WATERMARK) -> ParkingKey:
    return ParkingKey(TOPIC, partition, event)


class Request:
    def __init__(self) -> None:
        self.ready = False
        self.attempts = 0
        self.expired = 0

    def attempt(self) -> bool:
        self.attempts += 1
        return self.ready

    def expire(self) -> None:
        self.expired += 1


def test_many_events_in_one_turn_try_a_waiter_once() -> None:
    parking = Parking(Timers())
    request = Request()
    parking.park([key(0), key(1)], 1_000, request.attempt, request.expire, pytest.fail)
    for _ in range(100):
        parking.notify(key(0))
        parking.notify(key(1))
    parking.settle()
    assert request.attempts == 1
    assert len(parking) == 1


def test_a_completed_waiter_neither_expires_nor_is_tried_again() -> None:
    timers = Timers()
    parking = Parking(timers)
    request = Request()
    parking.park([key(0), key(1)], 1_000, request.attempt, request.expire, pytest.fail)
    request.ready = True
    parking.notify(key(1))
    parking.settle()
    parking.notify(key(0))
    parking.settle()
    timers.fire(2_000)
    assert (request.attempts, request.expired) == (1, 0)
    assert len(parking) == 0
    assert not parking._by_key


def test_a_deadline_answers_and_forgets() -> None:
    timers = Timers()
    parking = Parking(timers)
    request = Request()
    parking.park([key(0)], 1_000, request.attempt, request.expire, pytest.fail)
    timers.fire(999)
    assert request.expired == 0
    timers.fire(1_000)
    parking.notify(key(0))
    parking.settle()
    assert (request.attempts, request.expired) == (0, 1)
    assert not parking._by_key


def test_an_event_tries_only_who_waits_for_it() -> None:
    parking = Parking(Timers())
    waiting = [Request() for _ in range(1_000)]
    for partition, request in enumerate(waiting):
        parking.park([key(partition)], 1_000, request.attempt, request.expire, pytest.fail)
    parking.notify(key(7))
    parking.notify(key(7, Event.LOG_END))
    parking.settle()
    assert [partition for partition, request in enumerate(waiting) if request.attempts] == [7]


def test_a_partition_that_goes_away_tries_all_who_wait_for_any_event_of_it() -> None:
    parking = Parking(Timers())
    fetch, produce, other = Request(), Request(), Request()
    parking.park([key(0, Event.LOG_END)], 1_000, fetch.attempt, fetch.expire, pytest.fail)
    parking.park([key(0, Event.HIGH_WATERMARK)], 1_000, produce.attempt, produce.expire, pytest.fail)
    parking.park([key(1, Event.HIGH_WATERMARK)], 1_000, other.attempt, other.expire, pytest.fail)
    parking.notify_gone(TOPIC, 0)
    parking.settle()
    assert (fetch.attempts, produce.attempts, other.attempts) == (1, 1, 0)


def test_a_forgotten_waiter_is_never_called() -> None:
    timers = Timers()
    parking = Parking(timers)
    request = Request()
    waiter = parking.park([key(0)], 1_000, request.attempt, request.expire, pytest.fail)
    parking.notify(key(0))
    parking.forget(waiter)
    parking.settle()
    timers.fire(5_000)
    assert (request.attempts, request.expired) == (0, 0)


def test_an_answer_that_causes_another_event_is_settled_in_the_same_turn() -> None:
    parking = Parking(Timers())
    second = Request()
    second.ready = True

    def first() -> bool:
        parking.notify(key(1))
        return True

    parking.park([key(0)], 1_000, first, lambda: None, pytest.fail)
    parking.park([key(1)], 1_000, second.attempt, second.expire, pytest.fail)
    parking.notify(key(0))
    parking.settle()
    assert second.attempts == 1
    assert len(parking) == 0


def test_at_shutdown_everybody_gets_the_answer_of_a_timeout() -> None:
    parking = Parking(Timers())
    requests = [Request() for _ in range(10)]
    for request in requests:
        parking.park([key(0)], 1_000, request.attempt, request.expire, pytest.fail)
    parking.expire_all()
    assert [request.expired for request in requests] == [1] * 10
    assert len(parking) == 0


def test_a_waiter_that_raises_fails_alone() -> None:
    timers = Timers()
    parking = Parking(timers)
    failures: list[Exception] = []
    healthy = Request()
    healthy.ready = True

    def broken() -> bool:
        raise ValueError("a bug")

    def broken_expiry() -> None:
        raise ValueError("another bug")

    parking.park([key(0)], 1_000, broken, lambda: None, failures.append)
    parking.park([key(0)], 1_000, healthy.attempt, healthy.expire, pytest.fail)
    parking.park([key(1)], 1_000, lambda: False, broken_expiry, failures.append)
    parking.notify(key(0))
    parking.settle()
    timers.fire(1_000)
    assert [str(failure) for failure in failures] == ["a bug", "another bug"]
    assert healthy.attempts == 1
    assert len(parking) == 0
