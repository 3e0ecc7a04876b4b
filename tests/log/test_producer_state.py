"""Idempotent producers: in order, once, and never by an old one."""

from __future__ import annotations

import pytest

from log.building import NOW_MS, produced
from ottla.log.producer_snapshots import decode_snapshot, encode_snapshot
from ottla.log.producer_state import (
    PRODUCERS_REMEMBERED,
    AppendedBatch,
    ProducerEntry,
    ProducerStates,
)
from ottla.model.errors import CorruptData, ErrorCode, Refused
from ottla.records.batch import TRANSACTIONAL, BatchHeader

LAST_SEQUENCE = 2**31 - 1


def header(
    sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, flags: int = 0
) -> BatchHeader:
    return produced(producer_id, epoch, sequence, count, flags=flags).header


def accept(states: ProducerStates, batch: BatchHeader) -> int:
    """Check and apply; returns the base offset it got."""
    assert states.check(batch) is None
    offset = states.end_offset
    states.apply(batch, offset, batch.max_timestamp)
    states.end_offset = offset + batch.last_offset_delta + 1
    return offset


def refusal(states: ProducerStates, batch: BatchHeader) -> ErrorCode:
    with pytest.raises(Refused) as caught:
        states.check(batch)
    return caught.value.code


def test_sequences_follow_each_other() -> None:
    states = ProducerStates()
    accept(states, header(0, 3))
    accept(states, header(3, 2))
    assert refusal(states, header(6)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(states, header(5))


def test_a_retry_of_any_of_the_last_five_is_answered_with_its_first_offset() -> None:
    states = ProducerStates(end_offset=100)
    offsets = [accept(states, header(number * 3, 3)) for number in range(7)]
    for number in range(2, 7):
        duplicate = states.check(header(number * 3, 3))
        assert duplicate is not None
        assert (duplicate.base_offset, duplicate.last_offset) == (offsets[number], offsets[number] + 2)
        assert duplicate.timestamp == NOW_MS
    assert refusal(states, header(3, 3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_only_overlaps_an_old_one_is_no_retry() -> None:
    states = ProducerStates()
    accept(states, header(0, 5))
    assert refusal(states, header(0, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(states, header(1, 4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_old_epoch_is_fenced() -> None:
    states = ProducerStates()
    accept(states, header(0, epoch=3))
    assert refusal(states, header(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_sequence_zero() -> None:
    states = ProducerStates()
    accept(states, header(0, 5))
    assert refusal(states, header(5, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(states, header(0, epoch=1))
    assert refusal(states, header(0, 5)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_unknown_producer_may_start_anywhere() -> None:
    states = ProducerStates()
    accept(states, header(4711))
    assert refusal(states, header(4711 + 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    accept(states, header(4712))


def test_sequences_wrap_after_the_largest() -> None:
    states = ProducerStates()
    accept(states, header(LAST_SEQUENCE - 1, 2))
    accept(states, header(0))
    states = ProducerStates()
    offset = accept(states, header(LAST_SEQUENCE - 1, 5))
    duplicate = states.check(header(LAST_SEQUENCE - 1, 5))
    assert duplicate is not None
    assert (duplicate.base_offset, duplicate.base_sequence) == (offset, LAST_SEQUENCE - 1)
    accept(states, header(3))


def test_a_batch_may_follow_one_that_is_about_to_be_appended() -> None:
    states = ProducerStates()
    first, second = header(0, 2), header(2, 3)
    assert states.check(first) is None
    assert states.check(second, after=first) is None
    with pytest.raises(Refused):
        states.check(header(3), after=first)
    accept(states, first)
    duplicate = states.check(first, after=second)
    assert duplicate is not None
    assert duplicate.base_offset == 0


def test_producers_do_not_disturb_each_other() -> None:
    states = ProducerStates()
    accept(states, header(0, producer_id=1))
    accept(states, header(0, producer_id=2))
    accept(states, header(1, producer_id=1))
    assert len(states) == 2


def test_idle_producers_are_forgotten_and_may_start_anywhere_again() -> None:
    states = ProducerStates()
    accept(states, header(0))
    states.expire(NOW_MS + 999, 1_000)
    assert len(states) == 1
    states.expire(NOW_MS + 1_000, 1_000)
    assert len(states) == 0
    accept(states, header(55))


def test_a_transaction_opens_with_its_first_batch_and_ends_with_its_marker() -> None:
    states = ProducerStates(end_offset=40)
    accept(states, header(0, 2, flags=TRANSACTIONAL))
    accept(states, header(2, 1, flags=TRANSACTIONAL))
    assert states.first_unstable_offset(100) == 40
    assert refusal(states, header(3)) is ErrorCode.INVALID_TXN_STATE
    states.expire(NOW_MS + 10**9, 1_000)
    assert len(states) == 1, "an open transaction keeps its producer"
    marker = produced(7, 0, -1).header._replace(base_offset=43)
    completed = states.apply_marker(marker, coordinator_epoch=5, is_abort=True)
    assert completed == (7, 40, 43, True, 44)
    assert states.first_unstable_offset(43) == 40, "a power cut could still take the marker back"
    assert states.first_unstable_offset(1_000) is None
    entry = states.get(7)
    assert entry is not None
    assert entry.coordinator_epoch == 5
    accept(states, header(3, flags=TRANSACTIONAL))


def test_snapshot_has_kafkas_bytes() -> None:
    data = encode_snapshot({9: ProducerEntry(3, 4, 1_000, 40, (AppendedBatch(17, 100, 2, 1_000),))})
    body = (
        "00000001"  # one producer
        "0000000000000009 0003 00000011 0000000000000064 00000002 00000000000003e8 00000004 0000000000000028"
    )
    assert data[:2] == b"\0\1"
    assert data[6:] == bytes.fromhex(body)
    # CRC32C of the body, computed bit by bit.
    crc = 0xFFFFFFFF
    for byte in data[6:]:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    assert int.from_bytes(data[2:6], "big") == crc ^ 0xFFFFFFFF


def test_snapshot_keeps_epoch_last_batch_and_transaction() -> None:
    states = ProducerStates()
    for number in range(7):
        accept(states, header(number, producer_id=1))
    accept(states, header(0, 4, producer_id=2, epoch=6, flags=TRANSACTIONAL))
    states.apply_marker(produced(3, 1, -1).header, 2, False)
    restored = ProducerStates()
    restored.load(decode_snapshot(encode_snapshot(states.entries())), states.end_offset)
    assert restored.entries() == {
        key: entry._replace(batches=entry.batches[-1:]) for key, entry in states.entries().items()
    }
    assert restored.first_unstable_offset(100) == 7
    assert restored.check(header(7, producer_id=1)) is None


@pytest.mark.parametrize("position", range(10 + 46))
def test_damage_anywhere_in_a_snapshot_is_noticed(position: int) -> None:
    data = bytearray(
        encode_snapshot({9: ProducerEntry(3, 4, 1_000, None, (AppendedBatch(17, 100, 2, 1_000),))})
    )
    data[position] ^= 1
    with pytest.raises(CorruptData):
        decode_snapshot(bytes(data))
    with pytest.raises(CorruptData):
        decode_snapshot(bytes(data[:position]))


def test_only_so_many_producers_are_remembered_the_last_to_write_first() -> None:
    states, first = ProducerStates(), header(0)
    for producer_id in range(PRODUCERS_REMEMBERED):
        accept(states, first._replace(producer_id=producer_id))
    accept(states, header(1, producer_id=0))  # the first one writes again
    accept(states, header(0, producer_id=PRODUCERS_REMEMBERED))
    assert len(states) == PRODUCERS_REMEMBERED
    assert states.get(0) is not None
    assert states.get(1) is None
    accept(states, header(77, producer_id=1))  # forgotten, it may go on anywhere
