"""A business change and its message: both or neither, and the message once, whatever dies when."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from client.patterns.databases import Connect
from ottla.client import ClientError, Producer, read
from ottla.client.patterns import Outbox, OutboxRelay, RelayFenced
from ottla.client.patterns.statements import execute

NewTopic = Callable[..., str]


@pytest.fixture
def outbox(connect: Connect) -> Outbox:
    outbox = Outbox(f"outbox_{uuid.uuid4().hex}")
    with closing(connect()) as connection:
        outbox.create(connection)
        connection.commit()
    return outbox


@pytest.fixture
def relay(outbox: Outbox, connect: Connect, bootstrap: str) -> OutboxRelay:
    return OutboxRelay(outbox, connect, bootstrap, name=uuid.uuid4().hex)


def add(connect: Connect, outbox: Outbox, topic: str, values: range, *, commit: bool = True) -> None:
    with closing(connect()) as connection:
        for number in values:
            outbox.add(connection, topic, b"%d" % number, key=b"k", headers=[("n", b"%d" % number)])
        connection.commit() if commit else connection.rollback()


def values_in(bootstrap: str, topic: str) -> list[int]:
    return [int(record.value) for record in read(bootstrap, topic, isolation_level="read_committed")]


def rows_left(connect: Connect, outbox: Outbox) -> int:
    with closing(connect()) as connection:
        (count,) = execute(connection, f"SELECT COUNT(*) FROM {outbox.table}").fetchone()
        return int(count)


def test_what_was_committed_is_relayed_in_order_and_what_was_rolled_back_is_not(
    connect: Connect, outbox: Outbox, relay: OutboxRelay, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    add(connect, outbox, topic, range(700))
    add(connect, outbox, topic, range(900, 910), commit=False)
    assert relay.drain() == 700
    assert relay.drain() == 0
    assert values_in(bootstrap, topic) == list(range(700))
    assert rows_left(connect, outbox) == 0
    (first, *_) = read(bootstrap, topic)
    assert (first.key, first.headers) == (b"k", (("n", b"0"),))


@pytest.mark.parametrize("moment", ["before the send", "before the commit", "after the commit"])
def test_a_relay_that_dies_at_any_moment_loses_and_doubles_nothing(
    connect: Connect,
    outbox: Outbox,
    relay: OutboxRelay,
    bootstrap: str,
    new_topic: NewTopic,
    moment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = new_topic()
    add(connect, outbox, topic, range(20))

    class Died(Exception):
        pass

    def die(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        if moment == "before the send":
            patch.setattr(Producer, "send", die)
        elif moment == "before the commit":
            patch.setattr(Producer, "send_offsets_to_transaction", die)
        else:
            commit = Producer.commit_transaction

            def commit_and_die(producer: Producer) -> None:
                commit(producer)
                raise Died

            patch.setattr(Producer, "commit_transaction", commit_and_die)
        with pytest.raises((Died, ClientError)):
            relay.drain()
    add(connect, outbox, topic, range(20, 25))
    relay.drain()
    assert values_in(bootstrap, topic) == list(range(25))
    assert rows_left(connect, outbox) == 0


def test_a_row_that_commits_after_a_later_one_is_relayed(
    connect: Connect, outbox: Outbox, relay: OutboxRelay, bootstrap: str, new_topic: NewTopic
) -> None:
    """Its id is lower than what was relayed already: a mark by the highest id would lose it."""
    topic = new_topic()
    add(connect, outbox, topic, range(1, 3))
    assert relay.drain() == 2
    with closing(connect()) as connection:
        execute(
            connection,
            f"INSERT INTO {outbox.table} (id, topic, value, headers) VALUES (?, ?, ?, ?)",
            (-1, topic, b"0", "[]"),
        )
        connection.commit()
    assert relay.drain() == 1
    assert values_in(bootstrap, topic) == [1, 2, 0]


def test_a_newer_relay_fences_the_one_before(
    connect: Connect, outbox: Outbox, relay: OutboxRelay, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    stop, failure = threading.Event(), []

    def run() -> None:
        try:
            relay.run(stop, idle_seconds=0.02)
        except ClientError as error:
            failure.append(error)

    older = threading.Thread(target=run)
    older.start()
    try:
        add(connect, outbox, topic, range(5))
        while rows_left(connect, outbox):
            pass
        relay.drain()
        add(connect, outbox, topic, range(5, 10))
        older.join(30)
        assert isinstance(failure[0], RelayFenced)
        relay.drain()
    finally:
        stop.set()
        older.join()
    assert values_in(bootstrap, topic) == list(range(10))
