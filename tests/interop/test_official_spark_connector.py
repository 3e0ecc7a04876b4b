"""Spark's own Kafka connector works on our broker, ours on Apache Kafka: a job changes one word, and the rows
are the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat.waiting import eventually
from interop.apache_kafka import apache_kafka
from interop.builds import spark_connector_jars
from ottla.client import read
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.testing import BrokerProcess
from spark.conftest import SPARK_SETTINGS

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

MIXED, COMPACTED, MOVED = "mixed", "compacted", "moved"


@pytest.fixture(scope="module", params=["Ottla", "Apache Kafka"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with topics of all kinds."""
    settings, folder = {"log.cleaner.backoff.ms": "100"}, tmp_path_factory.mktemp("broker")
    if request.param == "Ottla":
        with BrokerProcess(folder, settings) as running:
            _fill(running.bootstrap)
            yield running.bootstrap
    else:
        with apache_kafka(folder, settings) as address:
            _fill(address)
            yield address


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from ottla.spark.session import local_session

    jars = ",".join(str(path) for path in spark_connector_jars())
    session = local_session("local[2]", spark__jars=jars, **SPARK_SETTINGS)
    yield session
    session.stop()


def _fill(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic(MIXED, partitions=3, replication_factor=1, configs={"retention.ms": "-1"})
        configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "500"}
        admin.create_topic(COMPACTED, partitions=1, replication_factor=1, configs=configs)
        admin.create_topic(MOVED, partitions=2, replication_factor=1)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with Producer(bootstrap, **{"compression.type": codec}) as producer:
            for number in range(60):
                producer.send(
                    MIXED,
                    None if number % 7 == 0 else b"%s %d" % (codec.encode(), number),
                    key=None if number % 5 == 0 else b"%d" % number,
                    partition=number % 3,
                    headers=[("a", b"%d" % number), ("b", None), ("ü", b"")][: number % 4],
                    timestamp_ms=1_700_000_000_000 + number,
                )
    for commits in (True, False, True):
        with Producer(bootstrap, transactional_id="mixed") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(30):
                producer.send(MIXED, b"transaction %d" % number, partition=number % 3)
            producer.flush()
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    for _ in range(4):
        with Producer(bootstrap) as producer:
            for number in range(50):
                producer.send(COMPACTED, b"%d" % number, key=b"%d" % (number % 10))
        time.sleep(0.8)
    # Of the rounds before the last the cleaner leaves each key once; then nothing changes any more.
    assert eventually(lambda: sum(1 for _ in read(bootstrap, COMPACTED)) == 60, 60)


def _rows(spark: Any, bootstrap: str, word: str, **options: str) -> list[Any]:
    reader = spark.read.format(word).option("kafka.bootstrap.servers", bootstrap)
    frame = reader.options(includeHeaders="true", **options).load()
    return frame.sort("topic", "partition", "offset").collect()


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("topic", [MIXED, COMPACTED])
def test_the_same_job_gives_the_same_rows(spark: Any, bootstrap: str, topic: str, isolation: str) -> None:
    options = {"subscribe": topic, "kafka.isolation.level": isolation}
    ours, theirs = (_rows(spark, bootstrap, word, **options) for word in ("ottla", "kafka"))
    assert ours == theirs
    assert len(ours) > 50


@pytest.mark.parametrize(
    "places",
    [
        {
            "startingOffsets": '{"mixed":{"0":5,"1":-2,"2":20}}',
            "endingOffsets": '{"mixed":{"0":50,"1":40,"2":-1}}',
        },
        {"startingTimestamp": "1700000000031"},
        {"endingTimestamp": "1700000000031", "minPartitions": "7"},
        {"maxRecordsPerPartition": "9"},
    ],
)
def test_places_mean_the_same(spark: Any, bootstrap: str, places: dict[str, str]) -> None:
    options = {"subscribe": MIXED, "kafka.isolation.level": "read_committed", **places}
    ours, theirs = (_rows(spark, bootstrap, word, **options) for word in ("ottla", "kafka"))
    assert ours == theirs
    assert ours


def test_the_schemas_are_the_same(spark: Any, bootstrap: str) -> None:
    def schema(word: str) -> Any:
        reader = spark.read.format(word).option("kafka.bootstrap.servers", bootstrap)
        return reader.options(subscribe=MIXED, includeHeaders="true").load().schema

    assert schema("ottla") == schema("kafka")


@pytest.mark.parametrize(
    ("source", "sink"), [("kafka", "kafka"), ("kafka", "ottla"), ("ottla", "kafka"), ("ottla", "ottla")]
)
def test_streams_of_both_connectors_go_together(
    spark: Any, bootstrap: str, tmp_path: Path, source: str, sink: str
) -> None:
    brokers = {"kafka.bootstrap.servers": bootstrap}
    reader = spark.readStream.format(source).options(**brokers, subscribe=MIXED, startingOffsets="earliest")
    # Transactions that were aborted are visible to Spark's own source unless it is told otherwise.
    frame = reader.options(
        **{"maxOffsetsPerTrigger": "100", "kafka.isolation.level": "read_committed"}
    ).load()
    target = f"{MOVED}-{source}-{sink}"
    with Admin(bootstrap) as admin:
        admin.create_topic(target, partitions=2, replication_factor=1)
    writer = frame.selectExpr("key", "coalesce(value, 'none') value").writeStream.format(sink)
    writer = writer.options(**brokers, topic=target, checkpointLocation=str(tmp_path))
    writer.trigger(availableNow=True).start().awaitTermination()
    moved = sorted(each.value for each in read(bootstrap, target) if each.value)
    came = sorted(row.value or b"none" for row in _rows(spark, bootstrap, "ottla", subscribe=MIXED))
    assert moved == came
