"""Reading topics as Arrow columns from a real broker: the same records as objects, ranges, groups, gaps."""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from confluent_kafka import Producer as ConfluentProducer

from client.conftest import NewTopicName
from ottla.client.admin import Admin
from ottla.client.columns import LibraryMissing
from ottla.client.consumer import Consumer
from ottla.client.errors import ClientError, OffsetOutOfRange
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer
from ottla.client.reading import read
from ottla.model.topics import TopicPartition
from ottla.records.columns import COLUMNS, Columns


def as_objects(table: pa.Table) -> list[ConsumedRecord]:
    """Rows as the objects that `poll` gives."""
    milliseconds = pyarrow.compute.divide(table["timestamp"].cast(pa.int64()), 1000).to_pylist()
    return [
        ConsumedRecord(
            row["topic"],
            row["partition"],
            row["offset"],
            millisecond,
            row["key"],
            row["value"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
        )
        for row, millisecond in zip(table.to_pylist(), milliseconds, strict=True)
    ]


def transactional(bootstrap: str) -> ConfluentProducer:
    producer = ConfluentProducer(
        {"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex, "linger.ms": 5}
    )
    producer.init_transactions(30)
    return producer


@pytest.fixture(scope="session")
def filled(bootstrap: str, new_topic: NewTopicName) -> str:
    """Three partitions of 1,000 records each with all that a record may hold."""
    name = new_topic(3, retention_ms="-1")
    with Producer(bootstrap, batch_size=2_000, linger_ms=20) as producer:
        for number in range(3_000):
            producer.send(
                name,
                None if number % 11 == 0 else b"v%d" % number,
                key=None if number % 5 == 0 else b"k%d" % number,
                headers=[("h", b"%d" % number), ("none", None)] if number % 7 == 0 else (),
                partition=number % 3,
                timestamp_ms=1_000_000 + number,
            )
    return name


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_columns_of_what_a_stock_client_wrote(bootstrap: str, new_topic: NewTopicName, codec: str) -> None:
    name = new_topic(retention_ms="-1")
    stock = ConfluentProducer({"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20})
    for number in range(500):
        headers = [("h", b"%d" % number), ("none", None)] if number % 3 == 0 else None
        stock.produce(name, b"v%d" % number * 30, b"k", headers=headers, timestamp=1_000 + number)
    assert stock.flush(30) == 0
    table = read(bootstrap, name).to_arrow()
    table.validate(full=True)
    assert as_objects(table) == list(read(bootstrap, name))
    assert table.num_rows == 500
    assert table["timestampType"].unique().to_pylist() == [0]


def test_columns_and_objects_are_the_same_records(bootstrap: str, filled: str) -> None:
    table = read(bootstrap, filled).to_arrow()
    assert table.schema.names == list(COLUMNS)
    assert sorted(as_objects(table)) == sorted(read(bootstrap, filled))


def test_batches_have_the_columns_and_rows_asked_for(bootstrap: str, filled: str) -> None:
    batches = list(read(bootstrap, filled).arrow_batches(["offset", "value"], rows_max=700))
    assert [batch.num_rows for batch in batches[:-1]] == [700] * (len(batches) - 1)
    assert sum(batch.num_rows for batch in batches) == 3_000
    assert all(batch.schema.names == ["offset", "value"] for batch in batches)


def test_full_columns_wait_for_nothing(bootstrap: str, filled: str) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign({TopicPartition(filled, 0): 0})
        columns = Columns(["offset"], 100)
        assert consumer.poll_into(columns, 30) == 100
        begin = time.monotonic()
        assert consumer.poll_into(columns, 300) == 100
        assert time.monotonic() - begin < 100
        assert columns.take()["offset"].to_pylist() == list(range(100))


def test_a_range_of_one_partition(bootstrap: str, filled: str) -> None:
    reading = read(bootstrap, filled, 100, 203, partitions=[1], auto_offset_reset="none")
    table = reading.to_arrow(["partition", "offset"])
    assert table["offset"].to_pylist() == list(range(100, 203))
    assert table["partition"].unique().to_pylist() == [1]
    empty = read(bootstrap, filled, 100, 100, partitions=[1]).to_arrow()
    assert empty.num_rows == 0
    assert empty.schema.names == list(COLUMNS)


@pytest.mark.parametrize(("start", "stop"), [(900, 1_001), (1_001, 1_001), (2_000, 3_000)])
def test_a_range_that_is_not_there_is_refused(bootstrap: str, filled: str, start: int, stop: int) -> None:
    with pytest.raises(OffsetOutOfRange) as caught:
        read(bootstrap, filled, start, stop, partitions=[0], auto_offset_reset="none")
    assert (caught.value.earliest, caught.value.latest) == (0, 1_000)
    assert caught.value.partition == TopicPartition(filled, 0)


def test_deleted_records_are_not_skipped_silently(
    bootstrap: str, admin: Admin, new_topic: NewTopicName
) -> None:
    name = new_topic(retention_ms="-1")
    target = TopicPartition(name, 0)
    with Producer(bootstrap) as producer:
        for number in range(50):
            producer.send(name, b"%d" % number)
    with Consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign({target: 5})
        admin.delete_records({target: 20})
        with pytest.raises(OffsetOutOfRange) as caught:
            consumer.poll_arrow(60)
    assert (caught.value.offset, caught.value.earliest, caught.value.latest) == (5, 20, 50)
    with pytest.raises(OffsetOutOfRange):
        read(bootstrap, name, 5, 30, partitions=[0], auto_offset_reset="none")
    assert read(bootstrap, name, 5, 30).to_arrow()["offset"].to_pylist() == list(range(20, 30))


def test_aborted_transactions_and_markers_are_left_out(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1")
    producer = transactional(bootstrap)
    for number in range(6):
        producer.begin_transaction()
        for item in range(10):
            producer.produce(name, b"%d-%d" % (number, item))
        producer.flush(30)
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    committed = [b"%d-%d" % (number, item) for number in (0, 2, 4) for item in range(10)]
    table = read(bootstrap, name, isolation_level="read_committed").to_arrow()
    assert table["value"].to_pylist() == committed
    everything = read(bootstrap, name, isolation_level="read_uncommitted").to_arrow()
    assert everything.num_rows == 60
    with read(bootstrap, name, isolation_level="read_committed") as objects:
        assert as_objects(table) == list(objects)


@pytest.mark.parametrize(("start", "stop"), [(11, 22), (21, 22), (10, 11)])
def test_a_range_without_any_record_ends(
    bootstrap: str, new_topic: NewTopicName, start: int, stop: int
) -> None:
    """Ten committed records and their marker at 10, ten aborted ones and their marker at 21."""
    name = new_topic(retention_ms="-1")
    producer = transactional(bootstrap)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce(name, b"x")
        producer.flush(30)
        end(30)
    begin = time.monotonic()
    reading = read(
        bootstrap,
        name,
        start,
        stop,
        partitions=[0],
        auto_offset_reset="none",
        isolation_level="read_committed",
    )
    assert reading.to_arrow().num_rows == 0
    assert list(read(bootstrap, name, start, stop, isolation_level="read_committed")) == []
    assert time.monotonic() - begin < 60


def test_under_read_committed_the_end_is_before_an_open_transaction(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    name = new_topic(retention_ms="-1")
    with Producer(bootstrap) as plain:
        plain.send(name, b"before")
    producer = transactional(bootstrap)
    producer.begin_transaction()
    producer.produce(name, b"open")
    producer.flush(30)
    table = read(bootstrap, name, isolation_level="read_committed").to_arrow()
    assert table["value"].to_pylist() == [b"before"]
    producer.abort_transaction(30)


def test_poll_arrow_follows_a_group_and_commits(bootstrap: str, filled: str) -> None:
    group = uuid.uuid4().hex
    seen: list[int] = []
    for _ in range(2):
        with Consumer(
            bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.subscribe([filled])
            count = 0
            while count < 1_500:
                table = consumer.poll_arrow(1.0, ["partition", "offset"], rows_max=500)
                seen += [row["partition"] * 10_000 + row["offset"] for row in table.to_pylist()]
                count += table.num_rows
            consumer.commit()
            positions = {target: consumer.position(target) for target in consumer.assignment()}
            assert {
                target: each.offset for target, each in consumer.committed(positions).items()
            } == positions
    assert sorted(seen) == [partition * 10_000 + offset for partition in range(3) for offset in range(1_000)]


def test_objects_and_columns_can_be_polled_in_turn(bootstrap: str, filled: str) -> None:
    target = TopicPartition(filled, 2)
    offsets: list[int] = []
    with Consumer(bootstrap, max_poll_records=7) as consumer:
        consumer.assign({target: 0})
        while len(offsets) < 1_000:
            offsets += [record.offset for record in consumer.poll(5)]
            offsets += consumer.poll_arrow(5, ["offset"], rows_max=13)["offset"].to_pylist()
            assert consumer.position(target) == offsets[-1] + 1
    assert offsets == list(range(1_000))


def test_an_empty_poll_has_its_columns(bootstrap: str, new_topic: NewTopicName) -> None:
    with Consumer(bootstrap) as consumer:
        consumer.assign({TopicPartition(new_topic(), 0): "start"})
        table = consumer.poll_arrow(0.1, ["key", "headers"])
    assert table.num_rows == 0
    assert table.schema.names == ["key", "headers"]


def test_a_table_of_an_endless_reading_is_refused(bootstrap: str, filled: str) -> None:
    with read(bootstrap, filled, stop=None) as reading:
        with pytest.raises(ClientError, match="without a stop"):
            reading.to_arrow()
        assert next(iter(reading.arrow_batches())).num_rows > 0


def test_polars_shows_the_same(bootstrap: str, filled: str) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = read(bootstrap, filled).to_polars(["value", "offset"])
    assert isinstance(frame, polars.DataFrame)
    assert frame.height == 3_000


def test_pandas_shows_the_same_or_is_asked_for(bootstrap: str, filled: str) -> None:
    reading = read(bootstrap, filled)
    try:
        import pandas  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(LibraryMissing, match="pip install pandas"):
            reading.to_pandas()
        return
    assert len(reading.to_pandas(["value"])) == 3_000


WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
from ottla.client import read, Consumer
reading = read(sys.argv[1], sys.argv[2])
try:
    reading.to_arrow()
except ImportError as error:
    print(error)
reading.close()
print(len(list(read(sys.argv[1], sys.argv[2]))))
"""


def test_without_pyarrow_only_columns_are_missed(bootstrap: str, filled: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW, bootstrap, filled], capture_output=True, text=True, check=True
    )
    assert run.stdout == "columns need pyarrow: pip install 'ottla[arrow]'\n3000\n"


def test_pyarrow_is_imported_late() -> None:
    code = "import sys, ottla.client.reading, ottla.client.producer; print('pyarrow' in sys.modules)"
    run: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
