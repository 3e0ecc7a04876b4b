"""Topics as streams: checkpoints, limits, triggers, progress that others can see, and loss."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMinRows

from ottla.client.admin import Admin
from ottla.client.conversation import Call, Conversation
from ottla.client.producer import Producer
from ottla.model.topics import TopicPartition
from ottla.spark import stream
from ottla.spark.errors import DataLoss
from ottla.spark.lag import lag_of
from ottla.spark.options import read_options
from ottla.spark.stream import TopicStreamReader
from ottla.testing import BrokerProcess
from spark.conftest import NewTopic


def _fill(broker: BrokerProcess, topic: str, numbers: range, partitions: int = 1) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in numbers:
            producer.send(topic, b"%d" % number, partition=number % partitions)


class Job:
    """A query that keeps what it reads in files, and can be run again on its checkpoint."""

    def __init__(self, spark: Any, broker: BrokerProcess, place: Path, **options: str) -> None:
        self._spark = spark
        self._place = place
        self._options = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "startingOffsets": "earliest",
            **options,
        }

    def start(self, **trigger: Any) -> Any:
        frame = self._spark.readStream.format("ottla").options(**self._options).load()
        writer = frame.selectExpr("cast(value as string) value").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(self._place / "checkpoint"))
        return writer.option("path", str(self._place / "rows")).trigger(**trigger).start()

    def run(self) -> Any:
        query = self.start(availableNow=True)
        query.awaitTermination()
        return query

    def values(self) -> list[int]:
        return sorted(int(row.value) for row in self._spark.read.parquet(str(self._place / "rows")).collect())


def _reader(broker: BrokerProcess, **options: str) -> TopicStreamReader:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "startingOffsets": "earliest", **options}
    return TopicStreamReader(
        read_options({name.lower(): value for name, value in given.items()}, streaming=True)
    )


def test_a_query_goes_on_where_its_checkpoint_says(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(2)
    _fill(broker, topic, range(10), 2)
    job = Job(spark, broker, tmp_path, subscribe=topic, maxOffsetsPerTrigger="4")
    first = job.run()
    assert [each.numInputRows for each in first.recentProgress] == [4, 4, 2]
    written = (tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1]
    assert json.loads(written) == {topic: {"0": 2, "1": 2}}

    admin.create_partitions(topic, 3)
    _fill(broker, topic, range(10, 22), 3)
    second = job.run()
    assert sum(each.numInputRows for each in second.recentProgress) == 12
    assert job.values() == list(range(22))
    assert lag_of(second.lastProgress) == {f"{topic}-{index}": 0 for index in range(3)}

    mirrored = admin.group_offsets(f"spark-ottla-source-{second.id}")
    found = {target.partition: each.offset for target, each in mirrored.items()}
    assert found == {0: 9, 1: 9, 2: 4}


def test_a_running_query_shows_its_lag_to_everybody(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    options = {"subscribe": topic, "kafka.group.id": f"group-of-{topic}"}
    job = Job(spark, broker, tmp_path, **options)
    query = job.start(processingTime="0 seconds")
    try:
        for end in (5, 9):
            _fill(broker, topic, range(end - 4 if end == 9 else 0, end))
            _until(lambda end=end: _mirrored(admin, topic) == end)
        assert job.values() == list(range(9))
    finally:
        query.stop()


def _mirrored(admin: Admin, topic: str) -> int:
    target = TopicPartition(topic, 0)
    found = admin.group_offsets(f"group-of-{topic}", [target]).get(target)
    return 0 if found is None else found.offset


def _until(condition: Any) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_idle_reader_waits_at_the_broker_and_wakes_with_the_next_record(
    broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    reader = _reader(broker, subscribe=topic)
    start = reader.initialOffset()
    before = time.monotonic()
    assert reader.latestOffset(start, ReadAllAvailable()) == start
    assert time.monotonic() - before >= 0.4
    _fill(broker, topic, range(1))
    assert reader.latestOffset(start, ReadAllAvailable()) == {topic: {"0": 1, "1": 0}}
    assert reader.reportLatestOffset() == {topic: {"0": 1, "1": 0}}
    assert _reader(broker, subscribe=topic).reportLatestOffset() == {topic: {"0": 1, "1": 0}}
    reader.stop()


def test_a_small_backlog_is_held_back_until_its_delay_is_over(
    broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(3))
    reader = _reader(broker, subscribe=topic, minOffsetsPerTrigger="5", maxTriggerDelay="1h")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(5)
    start = reader.initialOffset()
    assert reader.latestOffset(start, limit) == start
    _fill(broker, topic, range(2))
    assert reader.latestOffset(start, limit) == {topic: {"0": 5}}
    hasty = _reader(broker, subscribe=topic, minOffsetsPerTrigger="50", maxTriggerDelay="1ms")
    time.sleep(0.01)
    assert hasty.latestOffset(start, limit) == {topic: {"0": 5}}
    reader.stop()
    hasty.stop()


def test_a_new_query_starts_at_the_end_unless_told_otherwise(
    broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(3))
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic}
    reader = TopicStreamReader(read_options(given, streaming=True))
    assert reader.initialOffset() == {topic: {"0": 3}}
    _fill(broker, topic, range(3, 5))
    assert reader.initialOffset() == {topic: {"0": 3}}  # Spark asks once more before it reads
    later = TopicStreamReader(read_options(given, streaming=True))
    with pytest.raises(DataLoss, match="stopped before its first batch was finished"):
        later.partitions(later.initialOffset(), {topic: {"0": 4}})
    reader.stop()
    later.stop()


@pytest.mark.parametrize("fails", ["true", "false"])
def test_what_is_deleted_under_a_running_query_is_told_or_stepped_over_by_its_tasks(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic, fails: str
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(5))
    reader = _reader(broker, subscribe=topic, failOnDataLoss=fails, mirrorProgress="false")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    assert _read(reader, start, end) == [b"0", b"1", b"2", b"3", b"4"]
    _fill(broker, topic, range(5, 10))
    admin.delete_records({TopicPartition(topic, 0): 7})
    later = reader.latestOffset(end, ReadAllAvailable())
    if fails == "true":
        with pytest.raises(DataLoss, match="no longer has offset 5"):
            _read(reader, end, later)
    else:
        assert _read(reader, end, later) == [b"7", b"8", b"9"]
    reader.stop()


def _read(reader: TopicStreamReader, start: Any, end: Any) -> list[bytes]:
    batches = [batch for each in reader.partitions(start, end) for batch in reader.read(each)]
    return [value for batch in batches for value in batch["value"].to_pylist()]


def test_a_topic_that_is_created_anew_under_a_query_is_loss_even_when_it_has_grown(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(5))
    reader = _reader(broker, subscribe=topic)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    admin.delete_topic(topic)
    _create(admin, topic)
    _fill(broker, topic, range(100, 110))
    with pytest.raises(DataLoss, match="was deleted and created anew"):
        reader.latestOffset(end, ReadAllAvailable())
    reader.stop()


@pytest.mark.parametrize("fails", ["true", "false"])
def test_a_topic_that_goes_under_a_running_query_is_told_or_left_out(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic, fails: str
) -> None:
    stays, goes = new_topic(), new_topic(2)
    _fill(broker, stays, range(3))
    _fill(broker, goes, range(4), 2)
    options = {"failOnDataLoss": fails, "mirrorProgress": "false"}
    reader = _reader(broker, subscribe=f"{stays},{goes}", **options)
    assigned = _reader(broker, assign=json.dumps({stays: [0], goes: [1]}), **options)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assigned_end = assigned.latestOffset(assigned.initialOffset(), ReadAllAvailable())
    admin.delete_topic(goes)
    _until(lambda: goes not in admin.topic_names())
    if fails == "true":
        for each, known in ((reader, end), (assigned, assigned_end)):
            with pytest.raises(DataLoss, match="is gone: the topic was deleted"):
                each.latestOffset(known, ReadAllAvailable())
    else:
        _fill(broker, stays, range(3, 5))
        for each, known in ((reader, end), (assigned, assigned_end)):
            later = each.latestOffset(known, ReadAllAvailable())
            assert later == {stays: {"0": 5}}
            assert _read(each, known, later) == [b"3", b"4"]
    reader.stop()
    assigned.stop()


def test_a_task_on_a_topic_that_has_become_shorter_reads_what_there_is(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(9))
    reader = _reader(broker, subscribe=topic, failOnDataLoss="false", mirrorProgress="false")
    planned = reader.partitions({topic: {"0": 5}}, {topic: {"0": 9}})
    admin.delete_topic(topic)
    _create(admin, topic)
    _fill(broker, topic, range(100, 103))
    found = [value for each in planned for batch in reader.read(each) for value in batch["value"].to_pylist()]
    assert found == [b"100", b"101", b"102"]
    reader.stop()


def test_every_finished_batch_of_a_busy_query_is_mirrored_without_waiting_for_it(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic()
    group = f"group-of-{topic}"
    reader = _reader(broker, subscribe=topic, **{"kafka.group.id": group})
    start = reader.initialOffset()
    for count in range(1, 6):
        _fill(broker, topic, range(2))  # before the last batch is finished: more is always waiting
        end = reader.latestOffset(start, ReadAllAvailable())
        if start[topic]["0"]:
            _until(lambda start=start: _mirrored(admin, topic) == start[topic]["0"])
        assert len(_read(reader, start, end)) == 2
        assert end == {topic: {"0": 2 * count}}
        start = end
    reader.stop()


def test_a_batch_of_a_running_query_asks_brokers_for_its_end_and_its_records_alone(
    broker: BrokerProcess, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    begin = Conversation._begin

    def noting(conversation: Conversation, call: Call) -> list[memoryview]:
        asked.append(call.api.name)
        return begin(conversation, call)

    monkeypatch.setattr(Conversation, "_begin", noting)
    topic = new_topic(2)
    reader = _reader(broker, subscribe=topic, mirrorProgress="false")
    start = reader.initialOffset()
    for is_warm in (False, False, True):
        _fill(broker, topic, range(4), 2)
        asked.clear()
        end = reader.latestOffset(start, ReadAllAvailable())
        for_its_end = asked.copy()
        planned = reader.partitions(start, end)
        for_its_plan = asked[len(for_its_end) :]
        assert sum(batch.num_rows for each in planned for batch in reader.read(each)) == 4
        if is_warm:
            assert for_its_end == ["Metadata", "ListOffsets"]
            assert for_its_plan == []
            assert set(asked[len(for_its_end) :]) == {"Fetch"}
        start = end
        time.sleep(0.5)  # longer than retry.backoff.ms: a new consumer asks who leads once more after it
    reader.stop()


def test_a_query_goes_on_while_its_progress_cannot_be_mirrored(
    broker: BrokerProcess, new_topic: NewTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    held = threading.Event()
    monkeypatch.setattr(Admin, "alter_group_offsets", lambda *_: held.wait(60))
    reader = _reader(broker, subscribe=topic, **{"kafka.group.id": f"group-of-{topic}"})
    start = reader.initialOffset()
    monkeypatch.setattr(stream, "announce", lambda *_: None)
    for _ in range(3):
        _fill(broker, topic, range(2))
        end = reader.latestOffset(start, ReadAllAvailable())
        assert len(_read(reader, start, end)) == 2
        start = end
    held.set()
    reader.stop()


def test_a_topic_that_is_shorter_than_the_query_is_told_or_begun_anew(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    _fill(broker, topic, range(5))
    Job(spark, broker, tmp_path, subscribe=topic).run()
    admin.delete_topic(topic)
    _create(admin, topic)
    _fill(broker, topic, range(100, 103))
    with pytest.raises(StreamingQueryException, match=r"ends at 3, before the query's offset 5"):
        Job(spark, broker, tmp_path, subscribe=topic).run()
    tolerant = Job(spark, broker, tmp_path, subscribe=topic, failOnDataLoss="false")
    tolerant.run()
    assert tolerant.values() == [0, 1, 2, 3, 4, 100, 101, 102]


def _create(admin: Admin, topic: str) -> None:
    _until(lambda: topic not in admin.topic_names())
    admin.create_topic(topic, partitions=1, replication_factor=1)
