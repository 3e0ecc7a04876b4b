"""Tables as records on a real broker: what stock clients read of them, where they go, transactions."""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any

import pyarrow as pa
import pytest

from client.conftest import NewTopicName
from client.test_producer import read_with_confluent
from ottla.client.errors import (
    BrokerUnreachable,
    ClientError,
    Closed,
    MessageTooLarge,
    Misused,
    TimedOut,
)
from ottla.client.partitioners import partition_of_key
from ottla.client.producer import Producer
from ottla.client.reading import read
from ottla.client.rows_delivery import RowsDelivery
from ottla.records.rows import InvalidRows

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def numbers(count: int, size: int = 0) -> pa.Table:
    return pa.table({"value": pa.array([b"%d".ljust(size) % number for number in range(count)], pa.binary())})


def values(bootstrap: str, topic: str, **settings: object) -> list[bytes]:
    found: list[bytes] = read(bootstrap, topic, **settings).to_arrow(["value"])["value"].to_pylist()  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_stock_client_reads_what_was_sent(bootstrap: str, new_topic: NewTopicName, codec: str) -> None:
    name = new_topic(retention_ms="-1")
    count = 2_000
    table = pa.table(
        {
            "key": pa.array([None if each % 5 == 0 else b"k%d" % each for each in range(count)], pa.binary()),
            "value": pa.array(
                [None if each % 9 == 0 else b"v%d" % each for each in range(count)], pa.binary()
            ),
            "headers": pa.array(
                [
                    None if each % 3 else [{"key": "h", "value": b"1"}, {"key": "n", "value": None}]
                    for each in range(count)
                ],
                HEADERS,
            ),
            "timestamp": pa.array([1_000_000 + each for each in range(count)], pa.timestamp("ms", "UTC")),
        }
    )
    with Producer(bootstrap, compression_type=codec, batch_size=5_000) as producer:
        deliveries = producer.send_arrow(table, name).result(60)
    assert sum(delivery.records for delivery in deliveries) == count
    assert len(deliveries) > 1
    messages = read_with_confluent(bootstrap, name, count)
    assert [message.key() for message in messages] == table["key"].to_pylist()
    assert [message.value() for message in messages] == table["value"].to_pylist()
    assert [message.timestamp()[1] for message in messages] == list(range(1_000_000, 1_000_000 + count))
    assert [message.headers() for message in messages] == [
        None if each % 3 else [("h", b"1"), ("n", None)] for each in range(count)
    ]
    back = read(bootstrap, name).to_arrow(["key", "value", "headers"])
    assert back.equals(table.select(["key", "value", "headers"]))


def test_keys_go_where_objects_go(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(7, retention_ms="-1")
    keys = [b"key-%d" % number for number in range(500)]
    with Producer(bootstrap) as producer:
        producer.send_arrow(pa.table({"key": keys, "value": keys}), name).result(60)
        for key in keys:
            producer.send(name, key, key=key)
    table = read(bootstrap, name).to_arrow(["key", "partition"])
    assert table.num_rows == 1_000
    for key, partition in zip(table["key"].to_pylist(), table["partition"].to_pylist(), strict=True):
        assert partition == partition_of_key(key, 7)


def test_rows_without_a_key_share_a_partition_for_a_batch(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(3, retention_ms="-1")
    with Producer(bootstrap, batch_size=2_000) as producer:
        deliveries = producer.send_arrow(numbers(5_000), name).result(60)
    assert {delivery.partition for delivery in deliveries} == {0, 1, 2}
    assert sorted(values(bootstrap, name)) == sorted(numbers(5_000)["value"].to_pylist())


def test_rows_go_to_the_partitions_and_topics_that_they_name(bootstrap: str, new_topic: NewTopicName) -> None:
    first, second = new_topic(3, retention_ms="-1"), new_topic(1, retention_ms="-1")
    table = pa.table(
        {
            "topic": [first, second, first, first],
            "value": [b"a", b"b", b"c", b"d"],
            "partition": pa.array([2, None, 0, 2], pa.int32()),
        }
    )
    with Producer(bootstrap) as producer:
        deliveries = producer.send_arrow(table).result(60)
        assert sorted(deliveries) == sorted(
            [
                RowsDelivery(first, 0, 0, 1),
                RowsDelivery(first, 2, 0, 2),
                RowsDelivery(second, 0, 0, 1),
            ]
        )
        producer.send_arrow(table.drop_columns("partition"), second).result(60)
    assert values(bootstrap, first, partitions=[2]) == [b"a", b"d"]
    assert values(bootstrap, second) == [b"b", b"a", b"b", b"c", b"d"]


class LastByte:
    def partition(self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, view: Any) -> int:
        return int(value[-1]) % 3


@pytest.mark.parametrize(("partitioner", "expected"), [(LastByte(), None), ("round_robin", [0, 1, 2])])
def test_other_partitioners_choose_row_by_row(
    bootstrap: str, new_topic: NewTopicName, partitioner: Any, expected: list[int] | None
) -> None:
    name = new_topic(3, retention_ms="-1")
    with Producer(bootstrap, partitioner=partitioner) as producer:
        producer.send_arrow(numbers(300), name).result(60)
    table = read(bootstrap, name).to_arrow(["value", "partition"])
    for row in table.to_pylist():
        wanted = row["value"][-1] % 3 if expected is None else expected[int(row["value"]) % 3]
        assert row["partition"] == wanted


def test_tables_and_objects_keep_their_order(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1")
    expected = []
    with Producer(bootstrap, linger_ms=500) as producer:
        for number in range(20):
            producer.send(name, b"object-%d" % number)
            producer.send_arrow(pa.record_batch({"value": [b"row-%d" % number] * 3}), name)
            expected += [b"object-%d" % number, *[b"row-%d" % number] * 3]
        producer.flush(60)
    assert values(bootstrap, name) == expected


def test_many_small_chunks_share_batches(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1")
    table = pa.concat_tables([numbers(10) for _ in range(50)])
    with Producer(bootstrap) as producer:
        assert len(producer.send_arrow(table, name).result(60)) == 1
        assert producer.send_arrow(table.slice(0, 0), name).result(60) == []
    assert values(bootstrap, name) == table["value"].to_pylist()


def test_delivery_is_told_batch_by_batch(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1")
    told: list[tuple[RowsDelivery | None, ClientError | None]] = []
    with Producer(bootstrap, batch_size=1_000) as producer:
        future = producer.send_arrow(numbers(1_000), name, lambda *each: told.append(each))
        deliveries = future.result(60)
        assert future.done()
        producer.flush(10)
    assert [delivery for delivery, _ in told] == deliveries
    assert [error for _, error in told] == [None] * len(deliveries)
    assert [delivery.offset for delivery in deliveries] == [
        sum(each.records for each in deliveries[:index]) for index in range(len(deliveries))
    ]


def test_batches_too_large_for_their_topic_are_split(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1", max_message_bytes="2000")
    told: list[tuple[RowsDelivery | None, ClientError | None]] = []
    with Producer(bootstrap, batch_size=20_000) as producer:
        deliveries = producer.send_arrow(numbers(400, 50), name, lambda *each: told.append(each)).result(60)
        producer.flush(10)
    assert sum(delivery.records for delivery in deliveries) == 400
    assert sorted(deliveries) == sorted(delivery for delivery, _ in told if delivery is not None)
    assert values(bootstrap, name) == numbers(400, 50)["value"].to_pylist()


def test_a_record_too_large_is_refused_before_anything_is_sent(
    bootstrap: str, new_topic: NewTopicName
) -> None:
    name = new_topic(retention_ms="-1")
    table = pa.table({"value": [b"small", b"x" * 3_000]})
    with Producer(bootstrap, max_request_size=2_000) as producer:
        with pytest.raises(MessageTooLarge, match=r"max\.request\.size is 2000"):
            producer.send_arrow(table, name)
        with pytest.raises(InvalidRows, match="row 1"):
            producer.send_arrow(pa.table({"value": [b"a", b"b"], "partition": [0, 9]}), name)
        with pytest.raises(InvalidRows, match="topic"):
            producer.send_arrow(pa.table({"value": [b"a"]}))
        with pytest.raises(TypeError, match="dict"):
            producer.send_arrow({"value": [b"a"]}, name)  # type: ignore[arg-type]
    assert values(bootstrap, name) == []


def test_a_table_larger_than_the_buffer_waits_for_room(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(retention_ms="-1")
    table = numbers(20_000, 100)
    largest = 0
    with Producer(bootstrap, buffer_memory=100_000, batch_size=20_000) as producer:
        done = threading.Event()

        def watch() -> None:
            nonlocal largest
            while not done.is_set():
                largest = max(largest, producer.buffered_bytes)
                time.sleep(0.0005)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        producer.send_arrow(table, name).result(60)
        done.set()
        watcher.join()
    assert 0 < largest <= 100_000 + 61
    assert values(bootstrap, name) == table["value"].to_pylist()


def test_nothing_is_sent_to_nowhere_or_after_the_end(bootstrap: str) -> None:
    with Producer("127.0.0.1:1", max_block_ms=200) as producer, pytest.raises((TimedOut, BrokerUnreachable)):
        producer.send_arrow(numbers(10), "nowhere")
    with pytest.raises(Closed):
        producer.send_arrow(numbers(1), "nowhere")


def test_rows_belong_to_the_transaction(bootstrap: str, new_topic: NewTopicName) -> None:
    name = new_topic(2, retention_ms="-1")
    with Producer(bootstrap, transactional_id=uuid.uuid4().hex, batch_size=500) as producer:
        producer.init_transactions()
        with pytest.raises(Misused):
            producer.send_arrow(numbers(10), name)
        with producer.transaction():
            kept = producer.send_arrow(numbers(1_000), name)
        assert sum(delivery.records for delivery in kept.result(60)) == 1_000
        producer.begin_transaction()
        producer.send_arrow(pa.table({"value": [b"gone"] * 500}), name).result(60)
        producer.abort_transaction()
        with producer.transaction():
            producer.send_arrow(pa.table({"value": [b"last"]}), name)
    found = values(bootstrap, name, isolation_level="read_committed")
    assert sorted(found) == sorted([*numbers(1_000)["value"].to_pylist(), b"last"])
    assert len(values(bootstrap, name)) == 1_501
