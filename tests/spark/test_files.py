"""Segment files read without a broker, and beside a running one: the same rows as over the wire."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.waiting import eventually
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.files import LogFiles
from ottla.spark.options import read_options
from ottla.spark.reader import RangePartition, TopicReader
from ottla.testing import BrokerProcess

TOPIC = "orders"
_SETTINGS = {"log.flush.offset.checkpoint.interval.ms": "50"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A topic of several segments and codings, with committed, aborted and open transactions."""
    with BrokerProcess(tmp_path_factory.mktemp("files"), _SETTINGS) as broker:
        with Admin(broker.bootstrap) as admin:
            configs = {"segment.bytes": str(2**20), "retention.ms": "-1"}
            admin.create_topic(TOPIC, partitions=2, replication_factor=1, configs=configs)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            settings = {"compression.type": codec, "batch.size": "20000"}
            with Producer(broker.bootstrap, **settings) as producer:
                for number in range(400):
                    headers = [("n", b"%d" % number)] if number % 3 == 0 else []
                    producer.send(
                        TOPIC,
                        b"%s %d " % (codec.encode(), number) + os.urandom(5_000),
                        key=b"%d" % number,
                        partition=number % 2,
                        headers=headers,
                        timestamp_ms=1_700_000_000_000 + number,
                    )
        _transact(broker, commits=True)
        _transact(broker, commits=False)
        _transact(broker, commits=True)
        yield broker


def _transact(broker: BrokerProcess, *, commits: bool | None) -> Producer:
    producer = Producer(broker.bootstrap, transactional_id="files", **{"batch.size": "500"})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(40):
        producer.send(TOPIC, b"in a transaction %d" % number, partition=number % 2)
    producer.flush()
    if commits is None:
        return producer
    if commits:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    producer.close()
    return producer


def _rows(**options: str) -> list[tuple[Any, ...]]:
    given = {name.replace("__", ".").lower(): value for name, value in options.items()}
    given = {"subscribe": TOPIC, "includeheaders": "true", **given}
    reader = TopicReader(read_options(given, streaming=False))
    found = []
    for partition in reader.partitions():
        assert isinstance(partition, RangePartition)
        for batch in reader.read(partition):
            found += [tuple(map(str, row.values())) for row in batch.to_pylist()]
    return sorted(found)


def _until_checkpointed(broker: BrokerProcess, partitions: int = 2) -> None:
    targets = [TopicPartition(TOPIC, index) for index in range(partitions)]
    with Admin(broker.bootstrap) as admin:
        wanted = admin.latest_offsets(targets)
    deadline = time.monotonic() + 60
    while LogFiles(str(broker.data_dir)).latest_offsets(targets) != wanted:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_files_give_the_rows_that_the_broker_gives(filled: BrokerProcess, isolation: str) -> None:
    _until_checkpointed(filled)
    settings = {"kafka__isolation__level": isolation}
    over_the_wire = _rows(kafka__bootstrap__servers=filled.bootstrap, **settings)
    assert len(over_the_wire) == (2080 if isolation == "read_committed" else 2120)
    assert _rows(path=str(filled.data_dir), **settings) == over_the_wire
    cut = _rows(path=str(filled.data_dir), minPartitions="50", maxRecordsPerPartition="37", **settings)
    assert cut == over_the_wire


def test_a_segment_is_a_task(filled: BrokerProcess) -> None:
    _until_checkpointed(filled)
    reader = TopicReader(read_options({"path": str(filled.data_dir), "subscribe": TOPIC}, streaming=False))
    segments = list(Path(filled.data_dir).glob(f"**/{TOPIC}-?/*.log"))
    assert len(segments) > 6
    assert abs(len(reader.partitions()) - len(segments)) <= 2  # the last ones may be empty


def test_times_are_found_in_files(filled: BrokerProcess) -> None:
    _until_checkpointed(filled)
    places = {"startingTimestamp": "1700000000390", "endingOffsets": '{"orders":{"0":210,"1":-1}}'}
    over_the_wire = _rows(kafka__bootstrap__servers=filled.bootstrap, **places)
    assert over_the_wire
    assert _rows(path=str(filled.data_dir), **places) == over_the_wire


def test_an_open_transaction_ends_what_is_read(filled: BrokerProcess) -> None:
    before = _rows(kafka__bootstrap__servers=filled.bootstrap)
    producer = _transact(filled, commits=None)
    with Producer(filled.bootstrap) as other:
        other.send(TOPIC, b"behind it", partition=0)
        other.send(TOPIC, b"behind it", partition=1)
    _until_checkpointed(filled)
    assert _rows(path=str(filled.data_dir)) == before
    producer.abort_transaction()
    producer.close()
    _until_checkpointed(filled)
    assert len(_rows(path=str(filled.data_dir))) == len(before) + 2


def test_without_a_broker(filled: BrokerProcess, tmp_path: Path) -> None:
    over_the_wire = _rows(kafka__bootstrap__servers=filled.bootstrap)
    filled.stop()
    try:
        assert _rows(path=str(filled.data_dir)) == over_the_wire
        assert _rows(path=str(Path(filled.data_dir) / "log")) == over_the_wire
    finally:
        filled.start()
    with pytest.raises(InvalidOption, match="neither a data directory nor a partition's"):
        _rows(path=str(tmp_path))


def test_a_compacted_topic_gives_what_is_left_of_it_in_ranges_of_any_size(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", {**_SETTINGS, "log.cleaner.backoff.ms": "100"}) as broker:
        with Admin(broker.bootstrap) as admin:
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "300"}
            admin.create_topic(TOPIC, partitions=1, replication_factor=1, configs=configs)
        for _ in range(3):
            with Producer(broker.bootstrap) as producer:
                for number in range(50):
                    producer.send(TOPIC, b"%d" % number, key=b"%d" % (number % 10))
            time.sleep(0.4)  # so that the next round begins another segment
        # Of the rounds before the last the cleaner leaves each key once: most of their offsets are holes.
        assert eventually(lambda: len(_rows(kafka__bootstrap__servers=broker.bootstrap)) == 60, 60)
        _until_checkpointed(broker, partitions=1)
        whole = _rows(kafka__bootstrap__servers=broker.bootstrap)
        places = ({"kafka__bootstrap__servers": broker.bootstrap}, {"path": str(broker.data_dir)})
        for place in places:
            for most in ("1", "7", "64"):
                assert _rows(maxRecordsPerPartition=most, **place) == whole


def test_segments_that_go_before_they_are_read_are_told_or_stepped_over(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", _SETTINGS) as broker:
        with Admin(broker.bootstrap) as admin:
            configs = {"segment.bytes": str(2**20), "retention.ms": "-1"}
            admin.create_topic(TOPIC, partitions=1, replication_factor=1, configs=configs)
        with Producer(broker.bootstrap) as producer:
            for number in range(50):
                producer.send(TOPIC, b"%d " % number + os.urandom(100_000))
        data_dir = str(broker.data_dir)
    readers = {
        fails: TopicReader(
            read_options({"path": data_dir, "subscribe": TOPIC, "failondataloss": fails}, streaming=False)
        )
        for fails in ("true", "false")
    }
    planned = {fails: reader.partitions() for fails, reader in readers.items()}
    segments = sorted(Path(data_dir).glob(f"**/{TOPIC}-0/*.log"))
    assert len(segments) > 3
    segments[0].unlink()
    with pytest.raises(DataLoss, match=r"starts at \d+ now, the query is at 0"):
        _numbers(readers["true"], planned["true"])
    assert _numbers(readers["false"], planned["false"]) == list(range(int(segments[1].stem), 50))
    for segment in segments[1:]:
        segment.unlink()
    with pytest.raises(DataLoss, match="is gone: the topic was deleted"):
        _numbers(readers["true"], planned["true"][1:])
    assert _numbers(readers["false"], planned["false"]) == []


def _numbers(reader: TopicReader, planned: Iterable[Any]) -> list[int]:
    batches = [batch for each in planned for batch in reader.read(each)]
    return sorted({int(value.split()[0]) for batch in batches for value in batch["value"].to_pylist()})
