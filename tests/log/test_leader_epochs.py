"""Leader epochs: Kafka's file, and its answers to replicas and consumers."""

from __future__ import annotations

import pytest

from ottla.log.leader_epochs import EpochStart, LeaderEpochs, decode_leader_epochs
from ottla.model.errors import CorruptData


def epochs(*entries: tuple[int, int]) -> LeaderEpochs:
    return LeaderEpochs([EpochStart(*entry) for entry in entries])


def test_file_has_kafkas_bytes() -> None:
    data = epochs((0, 0), (3, 120)).encode()
    assert data == b"0\n2\n0 0\n3 120\n"
    assert decode_leader_epochs(data).entries() == ((0, 0), (3, 120))
    assert decode_leader_epochs(b"").entries() == ()


@pytest.mark.parametrize("data", [b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\n0\n", b"0\n1\n0 x\n", b"\xff\xfe"])
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        decode_leader_epochs(data)


def test_an_epoch_is_assigned_once() -> None:
    known = epochs((1, 10))
    assert not known.assign(1, 20)
    assert known.assign(2, 20)
    assert known.entries() == ((1, 10), (2, 20))


def test_entries_that_contradict_a_new_one_give_way() -> None:
    known = epochs((1, 10), (2, 20), (3, 30))
    known.assign(4, 20)
    assert known.entries() == ((1, 10), (4, 20))
    known.assign(2, 50)
    assert known.entries() == ((1, 10), (2, 50))
    assert known.latest == 2


def test_end_offset_of_an_epoch_is_the_start_of_the_next() -> None:
    known = epochs((2, 10), (3, 20), (6, 30))
    assert known.end_offset(6, 99) == (6, 99)
    assert known.end_offset(3, 99) == (3, 30)
    assert known.end_offset(4, 99) == (3, 30)
    assert known.end_offset(2, 99) == (2, 20)
    assert known.end_offset(1, 99) == (1, 10)
    assert known.end_offset(7, 99) == (-1, -1)
    assert known.end_offset(-1, 99) == (-1, -1)
    assert epochs().end_offset(0, 99) == (-1, -1)


def test_epoch_of_an_offset() -> None:
    known = epochs((2, 10), (3, 20))
    assert [known.epoch_at(offset) for offset in (9, 10, 19, 20, 500)] == [-1, 2, 2, 3, 3]


def test_truncating_the_end_forgets_epochs_from_there() -> None:
    known = epochs((1, 0), (2, 20), (3, 30))
    assert known.truncate_end(30)
    assert not known.truncate_end(21)
    assert known.entries() == ((1, 0), (2, 20))
    assert known.truncate_end(0)
    assert known.latest == -1


def test_truncating_the_start_keeps_the_epoch_that_goes_on_there() -> None:
    known = epochs((1, 0), (2, 20), (3, 30))
    assert not known.truncate_start(0)
    assert known.truncate_start(25)
    assert known.entries() == ((2, 25), (3, 30))
    assert known.truncate_start(30)
    assert known.entries() == ((3, 30),)
    assert known.truncate_start(99)
    assert known.entries() == ((3, 99),)
