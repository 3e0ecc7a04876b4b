"""Retries, dead letters, rate limits, routes and delays, on a real broker where one is involved."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from ottla.client import Admin, Consumer, Producer, Topic, read
from ottla.client.errors import Misused
from ottla.client.patterns import DeadLetters, Delays, RateLimit, Retries, Router, Unroutable
from ottla.client.typed import json

NewTopic = Callable[..., str]


def test_a_handler_is_tried_again_with_growing_pauses_and_its_last_error_is_raised() -> None:
    pauses: list[float] = []
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise ConnectionError(f"try {len(tries)}")

    with pytest.raises(ConnectionError, match="try 4"):
        Retries(4, 1.0, 3.0, sleep=pauses.append).call(fail)
    for pause, wanted in zip(pauses, [1.0, 2.0, 3.0], strict=True):
        assert wanted * 0.8 <= pause <= wanted * 1.2
    assert Retries(3, sleep=pauses.append).call(lambda: 7) == 7


def test_what_cannot_pass_by_itself_is_not_tried_again() -> None:
    tries: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        Retries(4, on=ConnectionError).call(fail)
    assert len(tries) == 1


def test_a_dead_letter_is_the_original_with_its_place_and_reason(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    dead = new_topic()
    with Producer(bootstrap) as producer:
        producer.send(topic, b"fine")
        producer.send(topic, b"\xff\x00", b"key", headers=[("trace", b"1")], timestamp_ms=1_000)
        producer.flush()
        _, record = read(bootstrap, topic)
        DeadLetters(producer, dead).send(record, ValueError("not for us"))
    (letter,) = read(bootstrap, dead)
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"key", b"\xff\x00", 1_000)
    assert dict(letter.headers) == {
        "trace": b"1",
        "dead-letter.topic": topic.encode(),
        "dead-letter.partition": b"0",
        "dead-letter.offset": b"1",
        "dead-letter.error": b"ValueError",
        "dead-letter.reason": b"not for us",
    }
    assert DeadLetters(producer).topic_for("orders") == "orders.dead"


def test_a_dead_letter_of_a_decoded_value_is_refused(bootstrap: str, new_topic: NewTopic) -> None:
    topic = Topic(new_topic(), value=json())
    with Producer(bootstrap) as producer:
        producer.send(topic, {"a": 1}).result()
        (record,) = read(bootstrap, topic)
        with pytest.raises(Misused, match="plain name"):
            DeadLetters(producer).send(record, ValueError())


def test_a_limit_lets_a_burst_pass_and_then_its_rate() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    limit = RateLimit(10, burst=5, clock=lambda: now[0], sleep=sleep)
    for _ in range(5):
        limit.wait()
    assert now[0] == 0.0
    for _ in range(20):
        limit.wait()
    assert now[0] == pytest.approx(2.0)
    now[0] += 100
    before = now[0]
    for _ in range(6):
        limit.wait()
    assert now[0] - before == pytest.approx(0.1), "what was not used is not saved up beyond the burst"


@pytest.mark.parametrize(
    ("pattern", "key", "matches"),
    [
        ("order.*.paid", "order.eu.paid", True),
        ("order.*.paid", "order.paid", False),
        ("order.*.paid", "order.eu.de.paid", False),
        ("order.#", "order", True),
        ("order.#", "order.eu.paid", True),
        ("order.#", "orders.eu", False),
        ("#.paid", "paid", True),
        ("#.paid", "order.eu.paid", True),
        ("#", "anything.at.all", True),
        ("order.eu", "orderxeu", False),
    ],
)
def test_bindings_match_as_those_of_topic_exchanges(pattern: str, key: str, matches: bool) -> None:
    assert Router({pattern: ["t"]}).topics_for(key) == (("t",) if matches else ())


def test_a_record_goes_once_to_every_topic_whose_binding_matches(bootstrap: str, new_topic: NewTopic) -> None:
    billing, audit, rest = new_topic(), new_topic(), new_topic()
    router = Router({"order.*.paid": [billing, audit], "order.#": [audit]}, unroutable=rest)
    with Producer(bootstrap) as producer:
        router.send(producer, "order.eu.paid", b"1", b"k")
        router.send(producer, "order.eu.new", b"2")
        router.send(producer, "user.new", b"3")
        with pytest.raises(Unroutable):
            Router({}).send(producer, "user.new", b"4")
    found = [[record.value for record in read(bootstrap, topic)] for topic in (billing, audit, rest)]
    assert found == [[b"1"], [b"1", b"2"], [b"3"]]
    (record,) = read(bootstrap, billing)
    assert record.headers == (("routing-key", b"order.eu.paid"),)


def test_delayed_records_come_when_they_are_due_in_order_and_once(
    bootstrap: str, new_topic: NewTopic
) -> None:
    target = new_topic()
    delays = Delays(f"{target}.delay", [0.4, 60])
    delays.create(bootstrap)
    delays.create(bootstrap)
    stop = threading.Event()
    mover = threading.Thread(target=delays.run, args=(bootstrap, stop))
    mover.start()
    try:
        with Producer(bootstrap) as producer:
            sent = time.time()
            for number in range(3):
                delays.send(producer, target, b"%d" % number, b"k", seconds=0.3, headers=[("h", b"1")])
            delays.send(producer, target, b"later", seconds=30).result()
        with Consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
            consumer.assign({(target, 0): "start"})  # type: ignore[dict-item]
            records = []
            while len(records) < 3:
                records += consumer.poll(0.5)
        assert time.time() - sent >= 0.4
        assert [(each.key, each.value, each.headers) for each in records] == [
            (b"k", b"%d" % number, (("h", b"1"),)) for number in range(3)
        ]
    finally:
        stop.set()
        mover.join()
    with Admin(bootstrap) as admin:
        assert delays.topic_of(30) in admin.topic_names()
    with pytest.raises(ValueError, match="the longest is 60"):
        delays.topic_of(61)
