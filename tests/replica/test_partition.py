"""A partition as its leader sees it: four offsets in order, an epoch that fences, events for who waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from log.building import NOW_MS, TOPIC_ID, batch, config, new_log, open_directory, sync
from ottla.log.system_files import SystemFiles
from ottla.model.configs import TopicConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicId
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions

RELAXED = config(flush_messages=2**63 - 1)


class Replica:
    """A partition over a real log, and the events it told of."""

    def __init__(self, path: Path, topic: TopicConfig | None = None, leader_epoch: int = 0) -> None:
        self.directory, self.log = new_log(SystemFiles(), str(path), topic)
        self.events: list[Event] = []
        self.partition = Partition(
            "orders", TOPIC_ID, 0, self.log, leader_epoch, lambda _, event: self.events.append(event)
        )

    def append(self, count: int = 1) -> int:
        return self.partition.append([batch([b"v"] * count)], NOW_MS).first_offset

    def sync(self) -> None:
        sync(self.log)
        self.partition.advance()

    @property
    def offsets(self) -> tuple[int, int, int, int]:
        each = self.partition
        return each.log_start_offset, each.last_stable_offset, each.high_watermark, each.log_end_offset


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[Replica]:
    replica = Replica(tmp_path)
    yield replica
    replica.directory.close()


@pytest.fixture
def relaxed(tmp_path: Path) -> Iterator[Replica]:
    replica = Replica(tmp_path, RELAXED)
    yield replica
    replica.directory.close()


# -- what readers may see ------------------------------------------------------------------------------------


def test_on_a_durable_topic_the_high_watermark_waits_for_the_disk(durable: Replica) -> None:
    durable.append(3)
    assert durable.offsets == (0, 0, 0, 3)
    assert durable.events == [Event.LOG_END]
    durable.partition.advance()
    assert durable.offsets == (0, 0, 0, 3)
    durable.sync()
    assert durable.offsets == (0, 3, 3, 3)
    assert durable.events == [Event.LOG_END, Event.HIGH_WATERMARK, Event.LAST_STABLE]


def test_on_a_relaxed_topic_it_follows_the_log(relaxed: Replica) -> None:
    relaxed.append(3)
    assert relaxed.offsets == (0, 3, 3, 3)
    assert relaxed.events == [Event.LOG_END, Event.HIGH_WATERMARK, Event.LAST_STABLE]


def test_what_is_written_during_a_round_waits_for_the_next(durable: Replica) -> None:
    durable.append()
    ticket = durable.log.begin_sync()
    assert ticket is not None
    durable.append()
    ticket.run()
    durable.log.finish_sync(ticket)
    durable.partition.advance()
    assert durable.offsets == (0, 1, 1, 2)
    durable.sync()
    assert durable.offsets == (0, 2, 2, 2)


def test_nothing_is_told_when_nothing_moved(durable: Replica) -> None:
    durable.append()
    durable.sync()
    told = len(durable.events)
    durable.partition.advance()
    durable.sync()
    assert len(durable.events) == told


def test_a_topic_that_becomes_durable_shows_no_more_until_it_is_synced(relaxed: Replica) -> None:
    relaxed.append(2)
    relaxed.partition.set_config(config())
    relaxed.append()
    relaxed.partition.advance()
    assert relaxed.offsets == (0, 2, 2, 3)  # what readers have seen stays seen
    relaxed.sync()
    assert relaxed.offsets == (0, 3, 3, 3)


def test_a_topic_that_becomes_relaxed_shows_what_it_has(durable: Replica) -> None:
    durable.append(2)
    durable.partition.set_config(RELAXED)
    durable.partition.advance()
    assert durable.offsets == (0, 2, 2, 2)


def test_after_a_restart_everything_found_is_visible(tmp_path: Path) -> None:
    replica = Replica(tmp_path)
    replica.append(4)
    replica.directory.abandon()
    directory = open_directory(SystemFiles(), str(tmp_path))
    (log,) = directory.logs.values()
    partition = Partition("orders", TOPIC_ID, 0, log, 1, lambda *_: None)
    assert (partition.high_watermark, partition.log_end_offset) == (4, 4)
    directory.close()


# -- trimming ------------------------------------------------------------------------------------------------


def test_trimming_moves_the_start_and_tells(durable: Replica) -> None:
    durable.append(5)
    durable.sync()
    durable.events.clear()
    assert durable.partition.delete_records(2) == 2
    assert durable.offsets == (2, 5, 5, 5)
    assert durable.events == [Event.LOG_START]
    assert durable.partition.delete_records(1) == 2
    assert durable.events == [Event.LOG_START]
    assert durable.partition.delete_records(-1) == 5


@pytest.mark.parametrize("offset", [3, -2])
def test_nothing_above_the_high_watermark_is_trimmed(durable: Replica, offset: int) -> None:
    durable.append(2)
    durable.sync()
    durable.append(2)  # not visible yet
    with pytest.raises(Refused) as refusal:
        durable.partition.delete_records(offset)
    assert refusal.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert durable.partition.delete_records(-1) == 2


# -- fencing -------------------------------------------------------------------------------------------------


def test_epochs_other_than_ours_are_refused(tmp_path: Path) -> None:
    replica = Replica(tmp_path, leader_epoch=3)
    replica.partition.check_epoch(-1)  # the client names none
    replica.partition.check_epoch(3)
    for epoch, code in ((2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        with pytest.raises(Refused) as refusal:
            replica.partition.check_epoch(epoch)
        assert refusal.value.code == code
    replica.directory.close()


def test_batches_carry_the_epoch_of_their_leader(durable: Replica) -> None:
    durable.append(2)
    durable.partition.leader_epoch = 5
    durable.append()
    assert [tuple(entry) for entry in durable.log.epochs.entries()] == [(0, 0), (5, 2)]


def test_acks_all_need_enough_replicas_but_never_more_than_there_are(tmp_path: Path) -> None:
    replica = Replica(tmp_path, config(min_insync_replicas=2))
    replica.partition.check_in_sync()  # one replica is all there is
    replica.partition.replica_count = 3
    with pytest.raises(Refused) as refusal:
        replica.partition.check_in_sync()
    assert refusal.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    replica.partition.in_sync_count = 2
    replica.partition.check_in_sync()
    replica.directory.close()


def test_a_deleted_partition_tells_so(durable: Replica) -> None:
    assert durable.partition.unavailable is None
    durable.partition.gone()
    assert durable.partition.unavailable is not None
    assert durable.partition.unavailable.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert durable.events == [Event.DELETION]


# -- all partitions of a broker ------------------------------------------------------------------------------


def test_partitions_are_found_by_name_id_and_log(durable: Replica) -> None:
    partitions = Partitions()
    partitions.add(durable.partition)
    assert partitions.named("orders", 0) is durable.partition
    assert partitions.with_id(TOPIC_ID, 0) is durable.partition
    assert partitions.of_log(durable.log) is durable.partition
    assert partitions.named("orders", 1) is None
    assert (len(partitions), list(partitions)) == (1, [durable.partition])
    assert partitions.remove(TOPIC_ID, 0) is durable.partition
    assert partitions.remove(TOPIC_ID, 0) is None
    assert (len(partitions), partitions.named("orders", 0), partitions.of_log(durable.log)) == (0, None, None)


def test_a_name_that_was_taken_again_stays_when_the_old_partition_goes(
    durable: Replica, tmp_path: Path
) -> None:
    partitions = Partitions()
    partitions.add(durable.partition)
    second = Replica(tmp_path / "second")
    anew = Partition("orders", TopicId(b"\x01" * 16), 0, second.log, 0, lambda *_: None)
    partitions.add(anew)
    partitions.remove(TOPIC_ID, 0)
    assert partitions.named("orders", 0) is anew
    second.directory.close()
