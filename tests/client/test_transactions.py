"""Transactions of our producer on a real broker: all or nothing, fencing, offsets, ends by somebody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client import Admin, Consumer, Producer, ProducerFenced, TopicPartition
from ottla.client.admin_values import CommittedOffset, GroupMetadata, OpenTransaction
from ottla.client.errors import (
    BrokerError,
    ClientError,
    CommitFailed,
    InvalidSetting,
    Misused,
    TransactionAborted,
    TransactionFailed,
)
from ottla.client.network import Network
from ottla.client.reading import read
from ottla.model.errors import ErrorCode

QUICK = {"retry.backoff.ms": 10, "linger.ms": 0}


@pytest.fixture(params=["version 2", "the older way"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Brokers of both kinds: what a client sends follows the level of transaction.version that it hears."""
    if request.param != "version 2":
        monkeypatch.setattr(Network, "finalized_level", lambda *_: 0)
    return str(request.param)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def transactional(
    stack: ExitStack, bootstrap: str, name: str | None = None, *, init: bool = True, **settings: object
) -> Producer:
    merged = {**QUICK, "transactional.id": name or unique_name("txn"), **settings}
    producer = stack.enter_context(Producer(bootstrap, **merged))  # type: ignore[arg-type]
    if init:
        producer.init_transactions()
    return producer


def values(
    bootstrap: str, topic: str, *, committed: bool = True, is_open: bool = False
) -> list[bytes | None]:
    with Admin(bootstrap) as admin:  # a commit may be decided before its markers are written
        places = admin.partitions_of(topic)
        deadline = time.monotonic() + 30
        while not is_open and (
            admin.latest_offsets(places) != admin.latest_offsets(places, read_committed=True)
        ):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    level = "read_committed" if committed else "read_uncommitted"
    with read(bootstrap, topic, isolation_level=level) as reading:
        return [record.value for record in reading]


@pytest.mark.usefixtures("level")
def test_a_transaction_shows_all_of_its_records_or_none(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    first, second = new_topic(2), new_topic(1)
    producer = transactional(stack, bootstrap)
    for round_number in range(4):
        producer.begin_transaction()
        for number in range(6):
            value = b"%d.%d" % (round_number, number)
            producer.send(first, value, partition=number % 2)
            producer.send(second, value)
        if round_number % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    committed = {b"%d.%d" % (round_number, number) for round_number in (0, 2) for number in range(6)}
    assert set(values(bootstrap, first)) == set(values(bootstrap, second)) == committed
    assert values(bootstrap, second) == sorted(committed)


@pytest.mark.usefixtures("level")
def test_the_block_commits_at_its_end_and_aborts_when_it_raises(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    producer = transactional(stack, bootstrap)
    with producer.transaction():
        producer.send(topic, b"kept")

    def fail_halfway() -> None:
        with producer.transaction():
            producer.send(topic, b"dropped").result(30)
            raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError, match="the work failed"):
        fail_halfway()
    with producer.transaction():
        pass
    with producer.transaction():
        producer.send(topic, b"kept too")
    assert values(bootstrap, topic) == [b"kept", b"kept too"]
    assert values(bootstrap, topic, committed=False) == [b"kept", b"dropped", b"kept too"]


@pytest.mark.usefixtures("level")
def test_a_newer_producer_fences_the_older_one(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, name = new_topic(1), unique_name("txn")
    old = transactional(stack, bootstrap, name)
    old.begin_transaction()
    old.send(topic, b"old").result(30)
    new = transactional(stack, bootstrap, name)
    old.send(topic, b"old too")
    with pytest.raises(ProducerFenced, match="a newer one"):
        old.commit_transaction()
    with pytest.raises(ProducerFenced):
        old.abort_transaction()
    with pytest.raises(ProducerFenced):
        old.begin_transaction()
    with new.transaction():
        new.send(topic, b"new")
    assert values(bootstrap, topic) == [b"new"]


def test_the_block_tells_of_fencing_as_such(
    stack: ExitStack, bootstrap: str, admin: Admin, new_topic: NewTopicName
) -> None:
    topic, name = new_topic(1), unique_name("txn")
    producer = transactional(stack, bootstrap, name)

    def be_fenced_halfway() -> None:
        with producer.transaction():
            producer.send(topic, b"").result(30)
            admin.fence_producer(name)

    with pytest.raises(ProducerFenced):
        be_fenced_halfway()
    assert values(bootstrap, topic) == []


@pytest.mark.usefixtures("level")
def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    source, sink, group = new_topic(1), new_topic(1), unique_name("group")
    with Producer(bootstrap) as feeder:
        for number in range(10):
            feeder.send(source, b"%d" % number)
    consumer = stack.enter_context(
        Consumer(
            bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=5,
            isolation_level="read_committed",
        )
    )
    consumer.subscribe([source])
    producer = transactional(stack, bootstrap)
    place = TopicPartition(source, 0)
    records = []
    while not records:
        records = consumer.poll(1)

    def fail_halfway() -> None:
        with producer.transaction():
            producer.send_offsets_to_transaction(consumer.positions(), consumer.group_metadata())
            raise RuntimeError("the work failed")

    with pytest.raises(RuntimeError, match="the work failed"):
        fail_halfway()
    assert consumer.committed([place]) == {}
    with producer.transaction():
        for record in records:
            producer.send(sink, record.value)
        producer.send_offsets_to_transaction(
            {place: CommittedOffset(5, None, "half")}, consumer.group_metadata()
        )
    assert consumer.committed([place])[place].offset == 5
    assert consumer.committed([place])[place].metadata == "half"
    assert values(bootstrap, sink) == [record.value for record in records]


def test_a_member_that_lost_its_place_cannot_commit_offsets(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, group = new_topic(1), unique_name("group")
    with Consumer(bootstrap, group_id=group) as consumer:
        consumer.subscribe([topic])
        while not consumer.assignment():
            consumer.poll(0.1)
        stale = consumer.group_metadata()
    producer = transactional(stack, bootstrap)
    producer.begin_transaction()
    producer.send(topic, b"lost").result(30)
    with pytest.raises(TransactionFailed) as caught:
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, stale)
    assert isinstance(caught.value.cause, CommitFailed)
    with pytest.raises(TransactionFailed, match="abort it"):
        producer.commit_transaction()
    producer.abort_transaction()
    with producer.transaction():
        producer.send(topic, b"again")
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, GroupMetadata(group))
    assert values(bootstrap, topic) == [b"again"]


@pytest.mark.usefixtures("level")
def test_a_lost_record_leaves_only_the_abort(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic, small = new_topic(1), new_topic(1, max_message_bytes="1000")
    producer = transactional(stack, bootstrap)
    producer.begin_transaction()
    producer.send(topic, b"fine").result(30)
    with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
        producer.send(small, b"x" * 5000).result(30)
    with pytest.raises(TransactionFailed, match="MESSAGE_TOO_LARGE"):
        producer.send(topic, b"more")
    with pytest.raises(TransactionFailed, match="MESSAGE_TOO_LARGE"):
        producer.commit_transaction()
    producer.abort_transaction()
    for number in range(3):
        with producer.transaction():
            producer.send(topic, b"%d" % number)
            producer.send(small, b"%d" % number)
    assert values(bootstrap, topic) == values(bootstrap, small) == [b"0", b"1", b"2"]


def test_records_that_wait_when_their_transaction_is_aborted_fail(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    producer = transactional(stack, bootstrap, **{"linger.ms": 60_000})
    producer.begin_transaction()
    future = producer.send(topic, b"waiting")
    producer.abort_transaction()
    assert isinstance(future.exception(30), TransactionAborted)
    with producer.transaction():
        producer.send(topic, b"sent")
    assert values(bootstrap, topic, committed=False) == [b"sent"]


def test_a_producer_that_is_closed_aborts_its_open_transaction(
    bootstrap: str, admin: Admin, new_topic: NewTopicName
) -> None:
    topic, name = new_topic(1), unique_name("txn")
    with ExitStack() as stack:
        producer = transactional(stack, bootstrap, name)
        producer.begin_transaction()
        producer.send(topic, b"").result(30)
    _await_state(admin, name, "CompleteAbort")
    assert values(bootstrap, topic) == []


def test_calls_out_of_place_say_what_to_call(
    stack: ExitStack, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = new_topic(1)
    producer = transactional(stack, bootstrap, init=False)
    with pytest.raises(Misused, match=r"init_transactions\(\) first"):
        producer.begin_transaction()
    with pytest.raises(Misused, match=r"init_transactions\(\) first"):
        producer.send(topic, b"")
    producer.init_transactions()
    with pytest.raises(Misused, match="already"):
        producer.init_transactions()
    for call in (producer.commit_transaction, producer.abort_transaction, producer.detach_transaction):
        with pytest.raises(Misused, match=r"begin_transaction\(\) first"):
            call()
    producer.begin_transaction()
    with pytest.raises(Misused, match="commit or abort"):
        producer.begin_transaction()
    plain = stack.enter_context(Producer(bootstrap))
    with pytest.raises(Misused, match=r"give it a transactional\.id"):
        plain.begin_transaction()
    with pytest.raises(InvalidSetting, match="idempotence"):
        Producer(bootstrap, transactional_id="t", acks="1")


def test_a_transaction_timeout_beyond_the_brokers_is_refused(stack: ExitStack, bootstrap: str) -> None:
    producer = transactional(stack, bootstrap, init=False, **{"transaction.timeout.ms": 2_000_000_000})
    with pytest.raises(ClientError, match=r"lower transaction\.timeout\.ms"):
        producer.init_transactions()


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("commit", [True, False])
def test_somebody_else_ends_what_a_producer_left_open(
    stack: ExitStack, bootstrap: str, admin: Admin, new_topic: NewTopicName, commit: bool
) -> None:
    topic = new_topic(3)
    opened = []
    for number in range(5):
        with Producer(bootstrap, transactional_id=unique_name("task"), **QUICK) as producer:  # type: ignore[arg-type]
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"%d" % number)
            opened.append(producer.detach_transaction())
            with pytest.raises(Misused, match="handed over"):
                producer.send(topic, b"late")
    with Producer(bootstrap, transactional_id=unique_name("task")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        opened.append(producer.detach_transaction())  # nothing was sent
    assert values(bootstrap, topic, is_open=True) == []
    assert admin.end_transactions(opened, commit=commit) == dict.fromkeys(opened)
    expected = [b"%d" % number for number in range(5)] if commit else []
    assert sorted(filter(None, values(bootstrap, topic))) == expected
    assert admin.end_transactions(opened, commit=commit) == dict.fromkeys(opened), "a second time is harmless"
    outcomes = admin.end_transactions(opened[:1], commit=not commit)
    assert isinstance(outcomes[opened[0]], BrokerError)


def test_an_end_by_somebody_else_never_takes_fencing_for_done(
    stack: ExitStack, bootstrap: str, admin: Admin, new_topic: NewTopicName
) -> None:
    topic, name = new_topic(1), unique_name("task")
    with Producer(bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"lost")
        opened = producer.detach_transaction()
    admin.fence_producer(name)
    with pytest.raises(ProducerFenced):
        admin.end_transaction(opened, commit=True)
    unknown = OpenTransaction(unique_name("nobody"), 4711, 0)
    with pytest.raises(BrokerError) as caught:
        admin.end_transaction(unknown)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert values(bootstrap, topic) == []


def _await_state(admin: Admin, name: str, state: str) -> None:
    deadline = time.monotonic() + 30
    while admin.transaction(name).state != state:
        assert time.monotonic() < deadline, admin.transaction(name)
        time.sleep(0.05)
