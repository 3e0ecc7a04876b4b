"""Half messages: seen when their change is certain, once; who is silent is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from client.conftest import NewTopicName
from compat.waiting import eventually
from ottla.client import Admin, Producer, ProducerFenced, read
from ottla.client.patterns import HalfMessageRelay, HalfMessages
from ottla.client.patterns.half_messages import Undecided

Check = Callable[[Undecided], bool | None]


@pytest.fixture
def halves(admin: Admin, new_topic: NewTopicName) -> HalfMessages:
    halves = HalfMessages(f"{new_topic(1)}.half")
    halves.create(admin)
    return halves


@contextmanager
def relay(bootstrap: str, halves: HalfMessages, check: Check) -> Iterator[HalfMessageRelay]:
    stop = threading.Event()
    running = HalfMessageRelay(halves, check, bootstrap, name=halves.topic, check_seconds=0.2)
    thread = threading.Thread(target=running.run, args=(stop,))
    thread.start()
    try:
        yield running
    finally:
        stop.set()
        thread.join()


def never(half: Undecided) -> bool | None:
    raise AssertionError(f"{half.value!r} was decided, and nobody need be asked")


def delivered(bootstrap: str, topic: str) -> list[bytes]:
    return [record.value for record in read(bootstrap, topic, isolation_level="read_committed")]


def test_a_half_message_is_seen_when_it_is_committed_and_not_before(
    bootstrap: str, halves: HalfMessages, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    with Producer(bootstrap) as producer:
        first = halves.prepare(producer, topic, b"first", key=b"k", headers=[("trace", b"1"), ("none", None)])
        second = halves.prepare(producer, topic, b"second")
        third = halves.prepare(producer, topic, b"third")
        assert delivered(bootstrap, topic) == []
        third.commit()
        second.roll_back()
        first.commit()
        with relay(bootstrap, halves, never):
            assert eventually(lambda: len(delivered(bootstrap, topic)) == 2, 60)
    assert delivered(bootstrap, topic) == [b"first", b"third"]
    (record, _) = read(bootstrap, topic)
    assert (record.key, record.headers) == (b"k", (("trace", b"1"), ("none", None)))


def test_who_is_silent_is_asked_until_the_answer_is_known(
    bootstrap: str, halves: HalfMessages, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    asked: dict[bytes | None, int] = {}

    def check(half: Undecided) -> bool | None:
        asked[half.value] = asked.get(half.value, 0) + 1
        assert half.topic == topic
        if half.value == b"broken":
            if asked[half.value] < 2:
                raise ValueError("the business cannot be asked")
            return True
        return {b"done": True, b"undone": False}.get(half.value or b"")

    with Producer(bootstrap) as producer:
        ids = [
            halves.prepare(producer, topic, value).id for value in (b"open", b"undone", b"done", b"broken")
        ]
        with relay(bootstrap, halves, check):
            assert eventually(lambda: sorted(delivered(bootstrap, topic)) == [b"broken", b"done"], 60)
            assert eventually(lambda: asked[b"open"] > 2, 60)
            halves.decide(producer, ids[0], commit=True)  # by who has the id only
            assert eventually(lambda: delivered(bootstrap, topic)[-1] == b"open", 60)
        assert asked[b"undone"] == asked[b"done"] == 1
        with relay(bootstrap, halves, never):  # which finds everything settled
            halves.prepare(producer, topic, b"after").commit()
            assert eventually(lambda: delivered(bootstrap, topic)[-1] == b"after", 60)
    assert len(delivered(bootstrap, topic)) == 4


def test_a_second_relay_takes_over_and_the_first_one_ends(
    bootstrap: str, halves: HalfMessages, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    fenced: list[Exception] = []
    is_asked, may_answer = threading.Event(), threading.Event()

    def slow(half: Undecided) -> bool | None:
        is_asked.set()
        may_answer.wait(30)
        return True

    def run_first() -> None:
        first = HalfMessageRelay(halves, slow, bootstrap, name=halves.topic, check_seconds=0.05)
        try:
            first.run(threading.Event())
        except ProducerFenced as error:
            fenced.append(error)

    with Producer(bootstrap) as producer:
        halves.prepare(producer, topic, b"once")
        thread = threading.Thread(target=run_first)
        thread.start()
        assert is_asked.wait(30)
        with relay(bootstrap, halves, lambda _: True):
            assert eventually(lambda: delivered(bootstrap, topic) == [b"once"], 60)
            may_answer.set()
            thread.join(30)
    assert fenced
    assert delivered(bootstrap, topic) == [b"once"]
