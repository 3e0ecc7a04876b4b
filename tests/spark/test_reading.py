"""Batch reads of topics, by Spark and by the reader that Spark calls."""

from __future__ import annotations

import datetime
import json
import time
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan

from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition
from ottla.spark.options import read_options
from ottla.spark.reader import FilteringTopicReader, RangePartition
from ottla.testing import BrokerProcess
from spark.conftest import NewTopic

Headers = list[tuple[str, bytes | None]]


def _fill(broker: BrokerProcess, topic: str, count: int, *, partitions: int = 1, **settings: str) -> None:
    with Producer(broker.bootstrap, **settings) as producer:
        for number in range(count):
            producer.send(topic, b"v%d" % number, key=b"k%d" % number, partition=number % partitions)


def _frame(spark: Any, broker: BrokerProcess, **options: str) -> Any:
    reader = spark.read.format("ottla").option("kafka.bootstrap.servers", broker.bootstrap)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), value)
    return reader.load()


def _offsets(rows: list[Any]) -> list[int]:
    return sorted(row.offset for row in rows)


def test_every_column_arrives_with_its_nulls(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(2, retention_ms="-1")
    headers: Headers = [("a", b"1"), ("a", None), ("ü", b"")]
    with Producer(broker.bootstrap) as producer:
        producer.send(topic, b"value", b"key", partition=1, headers=headers, timestamp_ms=1_700_000_000_123)
        producer.send(topic, None, b"only a key", partition=1, timestamp_ms=1_700_000_000_124)
        producer.send(topic, b"", None, partition=1, timestamp_ms=1_700_000_000_125)
    first, second, third = (
        _frame(spark, broker, subscribe=topic, includeHeaders="true").sort("offset").collect()
    )
    assert (first.key, first.value, first.topic) == (b"key", b"value", topic)
    assert (first.partition, first.offset, first.timestampType) == (1, 0, 0)
    assert [(each.key, each.value) for each in first.headers] == headers
    assert (second.value, second.headers) == (None, None)
    assert (third.key, third.value) == (None, b"")
    stamps = _frame(spark, broker, subscribe=topic).selectExpr("unix_millis(timestamp) ms").collect()
    assert sorted(row.ms for row in stamps) == [1_700_000_000_123, 1_700_000_000_124, 1_700_000_000_125]


def test_only_chosen_columns_are_built(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic()
    _fill(broker, topic, 3)
    assert _frame(spark, broker, subscribe=topic, columns="offset,value").columns == ["offset", "value"]
    reader = spark.read.schema("value binary, offset bigint").format("ottla")
    frame = reader.options(**{"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}).load()
    assert [tuple(row) for row in frame.collect()] == [(b"v0", 0), (b"v1", 1), (b"v2", 2)]
    wrong = spark.read.schema("value string").format("ottla")
    frame = wrong.options(**{"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}).load()
    with pytest.raises(PySparkException, match="column value is binary, not string"):
        frame.collect()


def test_places_in_partitions(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(2, retention_ms="-1")
    with Producer(broker.bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"v", partition=number % 2, timestamp_ms=1000 * (number // 2 + 1))
    start = json.dumps({topic: {"0": 4, "1": -2}})
    end = json.dumps({topic: {"0": 6, "1": -1}})
    rows = _frame(spark, broker, subscribe=topic, startingOffsets=start, endingOffsets=end).collect()
    assert _offsets([row for row in rows if row.partition == 0]) == [4, 5]
    assert _offsets([row for row in rows if row.partition == 1]) == list(range(10))
    timed = _frame(spark, broker, subscribe=topic, startingTimestamp="3500", endingTimestamp="6000")
    assert _offsets(timed.collect()) == [3, 3, 4, 4]
    each = json.dumps({topic: {"0": 9000, "1": 10_000}})
    assert _offsets(_frame(spark, broker, subscribe=topic, startingOffsetsByTimestamp=each).collect()) == [
        8,
        9,
        9,
    ]
    with pytest.raises(PySparkException, match="startingOffsetsByTimestampStrategy"):
        _frame(spark, broker, subscribe=topic, startingTimestamp="99000").collect()
    with pytest.raises(PySparkException, match="says nothing of"):
        _frame(spark, broker, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 4}})).collect()


def test_topics_by_pattern_and_by_partition(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    one, two = new_topic(2), new_topic(2)
    _fill(broker, one, 4, partitions=2)
    _fill(broker, two, 4, partitions=2)
    both = _frame(spark, broker, subscribePattern=f"({one}|{two})").collect()
    assert sorted({row.topic for row in both}) == sorted([one, two])
    assigned = _frame(spark, broker, assign=json.dumps({one: [1]})).collect()
    assert {(row.topic, row.partition) for row in assigned} == {(one, 1)}
    with pytest.raises(PySparkException, match="there is no topic 'nowhere'"):
        _frame(spark, broker, subscribe="nowhere").collect()


def test_compacted_and_transactional_topics_are_counted_right(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic
) -> None:
    from confluent_kafka import Producer as Confluent

    topic = new_topic()
    stock = Confluent({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    stock.init_transactions()
    for commits in (True, False, True):
        stock.begin_transaction()
        for number in range(5):
            stock.produce(topic, f"{commits} {number}")
        stock.flush()
        if commits:
            stock.commit_transaction()
        else:
            stock.abort_transaction()
    committed = _frame(spark, broker, subscribe=topic)
    assert {row.value.split()[0] for row in committed.collect()} == {b"True"}
    assert committed.count() == 10
    everything = _frame(spark, broker, subscribe=topic, kafka__isolation__level="read_uncommitted")
    assert everything.count() == 15


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic, codec: str
) -> None:
    topic = new_topic()
    _fill(broker, topic, 100, **{"compression.type": codec})
    values = [row.value for row in _frame(spark, broker, subscribe=topic, minPartitions="3").collect()]
    assert sorted(values) == sorted(b"v%d" % number for number in range(100))


def test_what_is_gone_is_told_or_stepped_over(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, 10)
    admin.delete_records({TopicPartition(topic, 0): 4})
    start = json.dumps({topic: {"0": 1}})
    with pytest.raises(PySparkException, match=r"starts at 4 now, the query is at 1.*failOnDataLoss"):
        _frame(spark, broker, subscribe=topic, startingOffsets=start).collect()
    rows = _frame(spark, broker, subscribe=topic, startingOffsets=start, failOnDataLoss="false").collect()
    assert _offsets(rows) == list(range(4, 10))


def test_a_batch_query_reads_nothing_that_is_before_its_start(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, 5)
    start = json.dumps({topic: {"0": 7}})
    with pytest.raises(PySparkException, match=r"ends at 5, the query was to start at 7.*failOnDataLoss"):
        _frame(spark, broker, subscribe=topic, startingOffsets=start).collect()
    tolerant = _frame(spark, broker, subscribe=topic, startingOffsets=start, failOnDataLoss="false")
    assert tolerant.collect() == []
    backwards = {
        "startingOffsets": json.dumps({topic: {"0": 4}}),
        "endingOffsets": json.dumps({topic: {"0": 2}}),
    }
    assert _frame(spark, broker, subscribe=topic, **backwards).collect() == []


def test_filters_narrow_what_is_read(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    now_ms = int(time.time() * 1000)
    with Producer(broker.bootstrap) as producer:
        for number in range(30):
            producer.send(topic, b"v", partition=number % 3, timestamp_ms=now_ms + 1000 * (number // 3))

    def ranges(*filters: Any) -> list[tuple[int, int, int]]:
        options = read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}, streaming=False
        )
        reader = FilteringTopicReader(options)
        assert list(reader.pushFilters(list(filters))) == list(filters)
        planned = [each.range for each in reader.partitions() if isinstance(each, RangePartition)]
        return [(each.partition, each.start_offset, each.end_offset) for each in planned if each.size]

    assert ranges(EqualTo(("partition",), 1)) == [(1, 0, 10)]
    assert ranges(In(("partition",), (0, 2)), LessThan(("offset",), 3)) == [(0, 0, 3), (2, 0, 3)]
    assert ranges(GreaterThan(("offset",), 7), EqualTo(("partition",), 0)) == [(0, 8, 10)]
    since = datetime.datetime.fromtimestamp((now_ms + 8000) / 1000, datetime.UTC)
    assert ranges(GreaterThanOrEqual(("timestamp",), since)) == [(0, 8, 10), (1, 8, 10), (2, 8, 10)]
    assert ranges(EqualTo(("key",), b"x")) == [(0, 0, 10), (1, 0, 10), (2, 0, 10)]
    frame = _frame(spark, broker, subscribe=topic)
    moment = f"timestamp_millis({now_ms + 8000})"
    assert frame.where(f"timestamp >= {moment} and partition in (0, 2) and offset < 9").count() == 2


def test_an_unknown_option_says_what_to_write(spark: Any, broker: BrokerProcess) -> None:
    with pytest.raises(PySparkException, match=r"did you mean startingOffsets\?"):
        _frame(spark, broker, subscribe="a", startingOfset="earliest").collect()


def test_nobody_at_the_address_is_told_at_once(spark: Any) -> None:
    frame = (
        spark.read.format("ottla").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "a")
    )
    with pytest.raises(PySparkException, match=r"127\.0\.0\.1:1"):
        frame.load().collect()
