"""Offsets by position and by time, records deleted from the front, and the log directories that show it."""

from __future__ import annotations

import pytest

from compat.admins.admin import EARLIEST, LATEST, MAX_TIMESTAMP, Admin, Position, refusal_of
from compat.admins.confluent import ConfluentAdmin
from compat.admins.kafka_python import KafkaPythonAdmin
from compat.broker import CreateTopic, unique_name
from compat.cases import QUICK, Lane, few_cases
from compat.clients.confluent import Confluent
from compat.clients.roster import CLIENTS, NAMES
from compat.record import Record
from compat.waiting import eventually
from ottla.model.errors import ErrorCode

_START_MS = 1_700_000_000_000
# Out of order on purpose: the latest time is in the middle.
_TIMES_MS = [_START_MS, _START_MS + 100, _START_MS + 900, _START_MS + 500]


@pytest.fixture(scope="module")
def timed_topic(bootstrap: str, create_topic: CreateTopic) -> str:
    """Four records, each in a batch of its own."""
    topic = create_topic("timed", configs={"retention.ms": "-1"})
    for time_ms in _TIMES_MS:
        Confluent().write(bootstrap, topic, 0, [Record("timed", value=b"v", timestamp_ms=time_ms)], QUICK)
    return topic


@pytest.fixture
def ten_records(bootstrap: str, create_topic: CreateTopic) -> str:
    topic = create_topic("ten")
    records = [Record(f"number {i}", value=b"%d" % i) for i in range(10)]
    Confluent().write(
        bootstrap, topic, 0, records, Lane("in pairs", few_cases, idempotent=False, many_requests=True)
    )
    return topic


def test_first_and_next_offsets_are_listed(admin: Admin, timed_topic: str) -> None:
    assert admin.offset(timed_topic, 0, EARLIEST).offset == 0
    assert admin.offset(timed_topic, 0, LATEST).offset == 4


def test_empty_partition_has_no_time(admin: Admin, create_topic: CreateTopic) -> None:
    topic = create_topic("empty")
    assert admin.offset(topic, 0, EARLIEST).offset == 0
    assert admin.offset(topic, 0, LATEST).offset == 0
    assert admin.offset(topic, 0, 0) == Position(-1, -1)
    assert admin.offset(topic, 0, MAX_TIMESTAMP) == Position(-1, -1)


@pytest.mark.parametrize(
    ("after_ms", "wanted"),
    [
        (0, Position(0, _START_MS)),
        (_START_MS, Position(0, _START_MS)),
        (_START_MS + 1, Position(1, _START_MS + 100)),
        (_START_MS + 101, Position(2, _START_MS + 900)),
        (_START_MS + 900, Position(2, _START_MS + 900)),
        (_START_MS + 901, Position(-1, -1)),
    ],
)
def test_first_record_at_or_after_a_time_is_found(
    admin: Admin, timed_topic: str, after_ms: int, wanted: Position
) -> None:
    assert admin.offset(timed_topic, 0, after_ms) == wanted


def test_record_with_the_latest_time_is_found(admin: Admin, timed_topic: str) -> None:
    assert admin.offset(timed_topic, 0, MAX_TIMESTAMP) == Position(2, _START_MS + 900)


def test_times_inside_one_batch_are_found(admin: Admin, bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("batched", configs={"retention.ms": "-1"})
    records = [Record("timed", value=b"v", timestamp_ms=time_ms) for time_ms in _TIMES_MS]
    Confluent().write(
        bootstrap, topic, 0, records, Lane("together", few_cases, codec="lz4", idempotent=False)
    )
    assert admin.offset(topic, 0, _START_MS + 1) == Position(1, _START_MS + 100)
    assert admin.offset(topic, 0, _START_MS + 450) == Position(2, _START_MS + 900)
    assert admin.offset(topic, 0, MAX_TIMESTAMP) == Position(2, _START_MS + 900)


def test_records_are_deleted_from_the_front(admin: Admin, bootstrap: str, ten_records: str) -> None:
    assert admin.delete_records(ten_records, 0, 4) == 4
    assert admin.offset(ten_records, 0, EARLIEST).offset == 4
    assert admin.offset(ten_records, 0, LATEST).offset == 10
    assert admin.delete_records(ten_records, 0, 2) == 4, "the front never moves back"


@pytest.mark.parametrize("reader", NAMES)
def test_deleted_records_are_not_read_again(bootstrap: str, ten_records: str, reader: str) -> None:
    """Offset 5 is the second of its batch: readers get the batch and leave its first record out."""
    ConfluentAdmin(bootstrap).delete_records(ten_records, 0, 5)
    records = CLIENTS[reader].read(bootstrap, ten_records, {0: 5})[0]
    assert [(record.offset, record.value) for record in records] == [(i, b"%d" % i) for i in range(5, 10)]


def test_all_records_are_deleted_up_to_the_high_watermark(
    admin: Admin, bootstrap: str, ten_records: str
) -> None:
    assert admin.delete_records(ten_records, 0, -1) == 10
    assert admin.offset(ten_records, 0, EARLIEST).offset == 10
    Confluent().write(bootstrap, ten_records, 0, [Record("next", value=b"next")], QUICK)
    assert admin.offset(ten_records, 0, LATEST).offset == 11
    [record] = Confluent().read(bootstrap, ten_records, {0: 1})[0]
    assert (record.offset, record.value) == (10, b"next")


def test_records_that_are_not_there_cannot_be_deleted(admin: Admin, ten_records: str) -> None:
    assert refusal_of(lambda: admin.delete_records(ten_records, 0, 11)) == ErrorCode.OFFSET_OUT_OF_RANGE


def test_unknown_partition_has_no_offsets(python_admin: KafkaPythonAdmin) -> None:
    refusal = refusal_of(lambda: python_admin.offset(unique_name("nowhere"), 0, LATEST))
    assert refusal == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_log_directories_show_each_partition_and_its_growth(
    bootstrap: str, create_topic: CreateTopic, python_admin: KafkaPythonAdmin
) -> None:
    topic = create_topic("sized", partitions=2)

    def sizes() -> dict[int, int]:
        [directory] = python_admin.log_dirs(topic)
        assert directory["error_code"] == 0
        assert directory["log_dir"]
        assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
        [found] = directory["topics"]
        assert found["name"] == topic
        assert {(p["offset_lag"], p["is_future_key"]) for p in found["partitions"]} == {(0, False)}
        return {p["partition_index"]: p["partition_size"] for p in found["partitions"]}

    assert eventually(lambda: sizes() == {0: 0, 1: 0})
    Confluent().write(bootstrap, topic, 1, [Record("sized", value=bytes(10_000))], QUICK)
    grown = sizes()
    assert grown[0] == 0
    assert 10_000 < grown[1] < 11_000
