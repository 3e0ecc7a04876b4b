"""Transactional ids: who may begin, add and end what, by the rules of old clients and of KIP-890."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction import ENDLESS_MS, EPOCH_MAX, Transaction, TransactionState
from ottla.coordinator.transaction_machine import (
    EPOCH_PER_TRANSACTION,
    ProducerIdNeeded,
    TransactionMachine,
)
from ottla.coordinator.transaction_records import read_transaction, transaction_record
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicPartition

ID = "payments"
NOW_MS = 1_700_000_000_000
PLACE = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
OLD, NEW = 0, EPOCH_PER_TRANSACTION


class Coordinator:
    """A machine whose decisions are written at once."""

    def __init__(self) -> None:
        self.machine = TransactionMachine()
        self.records: list[StateRecord] = []
        self.next_producer_id = 100

    @property
    def known(self) -> Transaction:
        return self.machine.transactions[ID]

    def write(self, decided: Transaction) -> Transaction:
        record = transaction_record(ID, decided)
        self.records.append(record)
        self.machine.apply(record)
        self.machine.remember_last_epoch(ID, decided)
        return decided

    def new_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def begin(self, expected: tuple[int, int] | None = None) -> Transaction:
        try:
            return self.write(self.machine.begin(ID, 60_000, expected, None, NOW_MS))
        except ProducerIdNeeded:
            return self.write(self.machine.begin(ID, 60_000, expected, self.new_id(), NOW_MS))

    def keep(self) -> Transaction:
        try:
            decided = self.machine.begin(ID, ENDLESS_MS, None, None, NOW_MS, keep_prepared=True)
        except ProducerIdNeeded:
            decided = self.machine.begin(ID, ENDLESS_MS, None, self.new_id(), NOW_MS, keep_prepared=True)
        return self.write(decided)

    def add(self, *places: TopicPartition) -> Transaction | None:
        known = self.known
        decided = self.machine.add(ID, known.producer_id, known.producer_epoch, places, NOW_MS)
        return decided if decided is None else self.write(decided)

    def end(
        self, is_commit: bool = True, version: int = NEW, producer: tuple[int, int] | None = None
    ) -> Transaction | None:
        producer_id, epoch = producer or (self.known.producer_id, self.known.producer_epoch)
        try:
            decided = self.machine.end(ID, producer_id, epoch, is_commit, version, None, NOW_MS)
        except ProducerIdNeeded:
            decided = self.machine.end(ID, producer_id, epoch, is_commit, version, self.new_id(), NOW_MS)
        return decided if decided is None else self.write(decided)

    def complete(self) -> Transaction:
        return self.write(self.machine.complete(ID, NOW_MS))


@pytest.fixture
def coordinator() -> Coordinator:
    coordinator = Coordinator()
    coordinator.begin()
    return coordinator


def code_of(refused: pytest.ExceptionInfo[Refused]) -> ErrorCode:
    return refused.value.code


def test_a_new_id_begins_with_epoch_0_and_every_beginning_raises_it(coordinator: Coordinator) -> None:
    assert (coordinator.known.producer_id, coordinator.known.producer_epoch) == (101, 0)
    assert coordinator.begin().producer_epoch == 1
    assert coordinator.known.state is TransactionState.EMPTY


def test_a_beginning_aborts_the_open_transaction_in_an_epoch_of_its_own(coordinator: Coordinator) -> None:
    coordinator.add(PLACE)
    ending = coordinator.begin()
    assert (ending.state, ending.producer_epoch) == (TransactionState.PREPARE_ABORT, 1)
    assert ending.partitions == {PLACE}
    with pytest.raises(Refused) as refused:
        coordinator.begin()
    assert code_of(refused) is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.complete()
    assert coordinator.begin().producer_epoch == 2


def test_a_producer_that_lost_the_answer_may_ask_for_its_epoch_again(coordinator: Coordinator) -> None:
    raised = coordinator.begin((101, 0))
    assert raised.producer_epoch == 1
    assert coordinator.begin((101, 0)).producer_epoch == 1, "the same answer"
    coordinator.begin()  # another instance
    for expected in ((101, 0), (101, 1), (7, 2)):
        with pytest.raises(Refused) as refused:
            coordinator.begin(expected)
        assert code_of(refused) is ErrorCode.PRODUCER_FENCED


def test_a_zombie_that_asks_for_its_next_epoch_does_not_disturb_the_open_transaction(
    coordinator: Coordinator,
) -> None:
    coordinator.begin()
    coordinator.add(PLACE)
    for expected in ((101, 0), (101, 7)):
        with pytest.raises(Refused) as refused:
            coordinator.begin(expected)
        assert code_of(refused) is ErrorCode.PRODUCER_FENCED
    assert coordinator.known.state is TransactionState.ONGOING
    assert coordinator.begin((101, 1)).state is TransactionState.PREPARE_ABORT, "its own producer may"


def test_epochs_that_run_out_lead_to_a_new_producer_id(coordinator: Coordinator) -> None:
    coordinator.write(coordinator.known._replace(producer_epoch=EPOCH_MAX - 1))
    begun = coordinator.begin()
    assert (begun.producer_id, begun.producer_epoch, begun.previous_producer_id) == (102, 0, 101)


def test_a_zombie_can_neither_add_nor_end(coordinator: Coordinator) -> None:
    coordinator.begin()
    for attempt in (
        lambda: coordinator.machine.add(ID, 101, 0, [PLACE], NOW_MS),
        lambda: coordinator.machine.verify(ID, 101, 0, PLACE),
        lambda: coordinator.end(producer=(101, 0), version=OLD),
        lambda: coordinator.end(producer=(101, 0), version=NEW),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert code_of(refused) is ErrorCode.PRODUCER_FENCED
    with pytest.raises(Refused) as refused:
        coordinator.machine.add(ID, 7, 0, [PLACE], NOW_MS)
    assert code_of(refused) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_partitions_are_added_once_and_verified(coordinator: Coordinator) -> None:
    with pytest.raises(Refused) as refused:
        coordinator.machine.verify(ID, 101, 0, PLACE)
    assert code_of(refused) is ErrorCode.TRANSACTION_ABORTABLE
    first = coordinator.add(PLACE)
    assert first is not None
    assert first.started_ms == NOW_MS
    assert coordinator.add(PLACE) is None
    coordinator.machine.verify(ID, 101, 0, PLACE)
    second = coordinator.add(OTHER)
    assert second is not None
    assert second.partitions == {PLACE, OTHER}


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_old_client_keeps_its_epoch_over_transactions(coordinator: Coordinator, is_commit: bool) -> None:
    coordinator.add(PLACE)
    ending = coordinator.end(is_commit, OLD)
    assert ending is not None
    assert ending.producer_epoch == 0
    with pytest.raises(Refused) as refused:
        coordinator.end(is_commit, OLD)
    assert code_of(refused) is ErrorCode.CONCURRENT_TRANSACTIONS
    with pytest.raises(Refused) as refused:
        coordinator.end(not is_commit, OLD)
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    coordinator.complete()
    assert coordinator.end(is_commit, OLD) is None, "it has ended so"
    with pytest.raises(Refused) as refused:
        coordinator.end(not is_commit, OLD)
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    added = coordinator.add(OTHER)
    assert added is not None
    assert added.partitions == {OTHER}


@pytest.mark.parametrize("is_commit", [True, False])
def test_each_transaction_of_a_new_client_has_its_own_epoch(
    coordinator: Coordinator, is_commit: bool
) -> None:
    coordinator.add(PLACE)
    ending = coordinator.end(is_commit)
    assert ending is not None
    assert ending.producer_epoch == 1
    with pytest.raises(Refused) as refused:
        coordinator.end(is_commit, producer=(101, 0))
    assert code_of(refused) is ErrorCode.CONCURRENT_TRANSACTIONS
    coordinator.complete()
    assert coordinator.end(is_commit, producer=(101, 0)) is None, "a repeated request"
    with pytest.raises(Refused) as refused:
        coordinator.end(not is_commit, producer=(101, 0))
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    with pytest.raises(Refused) as refused:
        coordinator.machine.add(ID, 101, 0, [PLACE], NOW_MS)
    assert code_of(refused) is ErrorCode.PRODUCER_FENCED


def test_a_new_client_may_abort_what_has_not_begun_but_not_commit_it(coordinator: Coordinator) -> None:
    with pytest.raises(Refused) as refused:
        coordinator.end(is_commit=True)
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    ending = coordinator.end(is_commit=False)
    assert ending is not None
    assert (ending.producer_epoch, ending.partitions) == (1, frozenset())
    coordinator.complete()
    again = coordinator.end(is_commit=False)
    assert again is not None
    assert again.producer_epoch == 2


def test_a_new_client_that_runs_out_of_epochs_goes_on_with_another_id(coordinator: Coordinator) -> None:
    coordinator.write(coordinator.known._replace(producer_epoch=EPOCH_MAX - 1))
    coordinator.add(PLACE)
    ending = coordinator.end()
    assert ending is not None
    assert (ending.producer_id, ending.producer_epoch, ending.next_producer_id) == (101, EPOCH_MAX, 102)
    completed = coordinator.complete()
    assert (completed.producer_id, completed.producer_epoch) == (102, 0)
    assert coordinator.end(producer=(101, EPOCH_MAX - 1)) is None, "a repeated request"


def test_a_client_whose_transaction_took_too_long_may_abort_and_go_on(coordinator: Coordinator) -> None:
    coordinator.add(PLACE)
    coordinator.write(coordinator.machine.fence(ID, NOW_MS))
    coordinator.complete()
    with pytest.raises(Refused) as refused:
        coordinator.end(is_commit=True, producer=(101, 0))
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    assert coordinator.end(is_commit=False, producer=(101, 0)) is None
    assert coordinator.known.producer_epoch == 1
    with pytest.raises(Refused) as refused:
        coordinator.end(is_commit=False, producer=(101, 0), version=OLD)
    assert code_of(refused) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_prepared_transaction_waits_for_the_producer_that_ends_it(
    coordinator: Coordinator, is_commit: bool
) -> None:
    coordinator.write(coordinator.known._replace(timeout_ms=ENDLESS_MS))
    coordinator.add(PLACE)
    assert coordinator.known.deadline_ms is None
    kept = coordinator.keep()
    assert (kept.state, kept.owner) == (TransactionState.ONGOING, (101, 1))
    assert (kept.producer_id, kept.producer_epoch) == (101, 0), "as it was written"
    assert coordinator.keep().owner == (101, 2), "and the one before is fenced"
    for epoch in (0, 1):
        with pytest.raises(Refused) as refused:
            coordinator.end(is_commit, producer=(101, epoch))
        assert code_of(refused) is ErrorCode.PRODUCER_FENCED
    with pytest.raises(Refused) as refused:
        coordinator.machine.add(ID, 101, 2, [OTHER], NOW_MS)
    assert code_of(refused) is ErrorCode.INVALID_TXN_STATE
    ending = coordinator.end(is_commit, producer=(101, 2))
    assert ending is not None
    assert (ending.producer_epoch, ending.partitions) == (3, {PLACE})
    coordinator.complete()
    assert coordinator.known.owner == (101, 3)
    assert coordinator.end(is_commit, producer=(101, 2)) is None, "a repeated request"


def test_a_prepared_transaction_whose_epochs_run_out_is_ended_by_another_id(coordinator: Coordinator) -> None:
    coordinator.write(coordinator.known._replace(producer_epoch=EPOCH_MAX - 1))
    coordinator.add(PLACE)
    assert coordinator.keep().owner == (102, 0)
    ending = coordinator.end(producer=(102, 0))
    assert ending is not None
    assert (ending.producer_id, ending.producer_epoch) == (101, EPOCH_MAX)
    with pytest.raises(Refused) as refused:
        coordinator.end(producer=(102, 0))
    assert code_of(refused) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.complete().owner == (102, 1)
    assert coordinator.end(producer=(102, 0)) is None, "a repeated request"


def test_a_prepared_transaction_that_nobody_keeps_is_aborted(coordinator: Coordinator) -> None:
    coordinator.add(PLACE)
    coordinator.keep()
    ending = coordinator.begin()
    assert (ending.state, ending.producer_epoch) == (TransactionState.PREPARE_ABORT, 2)
    assert coordinator.complete().owner == (101, 2)


def test_only_idle_ids_expire(coordinator: Coordinator) -> None:
    assert coordinator.machine.expired(NOW_MS + 9, 10) == []
    assert coordinator.machine.expired(NOW_MS + 10, 10) == [ID]
    coordinator.add(PLACE)
    assert coordinator.machine.expired(NOW_MS + 10, 10) == []


def test_a_record_has_kafkas_bytes() -> None:
    known = Transaction(
        101, 3, 60_000, TransactionState.ONGOING, frozenset({OTHER, PLACE}), 5, 6, 99, client_version=2
    )
    record = transaction_record("id", known)
    assert record.key == bytes.fromhex("0000 0002") + b"id"
    assert (
        record.value
        == bytes.fromhex(
            "0001"  # version
            "0000000000000065 0003 0000ea60 01"
            "02 07" + b"orders".hex() + "03 00000000 00000001 00"  # one topic with two partitions
            "0000000000000006 0000000000000005"
            "02 00 08 0000000000000063 02 02 0002"  # previous producer id and the client's version, by tag
        )
    )


def test_a_strangers_bytes_are_skipped(caplog: pytest.LogCaptureFixture) -> None:
    machine = TransactionMachine()
    good = transaction_record(ID, Transaction(1, 0, 1))
    assert good.value is not None
    for key, value in (
        (b"", b""),
        (b"\0\7x", b""),
        (good.key, b""),
        (good.key, b"\0\1\0"),
        (good.key, b"\0\\9" + good.value[2:]),
        (good.key, good.value[:16] + b"\x63" + good.value[17:]),
    ):
        machine.apply(StateRecord(key, value))
    assert not machine.transactions
    assert len(caplog.messages) == 6


@pytest.mark.parametrize("seed", range(50))
def test_replaying_the_log_gives_the_same_state(seed: int) -> None:
    rng = random.Random(seed)
    coordinator = Coordinator()
    coordinator.begin()
    epochs: list[tuple[int, int]] = []
    for _ in range(60):
        known = coordinator.known
        with suppress(Refused):  # there is nothing to end
            if known.state.is_ending:
                coordinator.complete()
                continue
            step = rng.randrange(4)
            if step == 0:
                coordinator.begin()
            elif step == 1:
                coordinator.add(rng.choice((PLACE, OTHER)))
            else:
                coordinator.end(rng.random() < 0.5, rng.choice((OLD, NEW)))
        epochs.append((coordinator.known.producer_id, coordinator.known.producer_epoch))
    assert epochs == sorted(epochs), "an epoch never goes back"
    replayed = TransactionMachine()
    for record in coordinator.records:
        replayed.apply(record)
    assert replayed.transactions == {
        ID: coordinator.known._replace(last_epoch=replayed.transactions[ID].last_epoch)
    }
    assert read_transaction(coordinator.records[-1])[1] == replayed.transactions[ID]
