"""Topics as a sink: what rows may look like, exactly once through transactions, and what is refused."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType

from compat.waiting import eventually
from ottla.client import read
from ottla.client.admin import Admin
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer
from ottla.spark import ledger as ledgers
from ottla.spark.endings import drop_leftovers, finish
from ottla.spark.errors import LostTransaction, Superseded, Undecidable
from ottla.spark.ledger import Ledger
from ottla.spark.options import write_options
from ottla.spark.sink import StreamSink, TopicSink, Written
from ottla.spark.transactional_ids import hold_ids, is_of_a_task
from ottla.testing import BrokerProcess
from spark.conftest import NewTopic


def _records(broker: BrokerProcess, topic: str, isolation: str = "read_committed") -> list[ConsumedRecord]:
    return list(read(broker.bootstrap, topic, **{"isolation.level": isolation}))


def _save(frame: Any, broker: BrokerProcess, **options: str) -> None:
    writer = frame.write.format("ottla").mode("append")
    writer.options(**{"kafka.bootstrap.servers": broker.bootstrap, **options}).save()


def test_rows_of_every_shape_become_records(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    frame = spark.sql(
        "select cast('k' as string) key, cast('v' as binary) value, 2 partition, "
        "array(named_struct('key', 'h', 'value', cast('x' as binary)), "
        "named_struct('key', 'n', 'value', cast(null as binary))) headers, 'left out' other"
    )
    _save(frame, broker, topic=topic)
    (record,) = _records(broker, topic)
    assert (record.key, record.value, record.partition) == (b"k", b"v", 2)
    assert list(record.headers) == [("h", b"x"), ("n", None)]
    _save(spark.sql(f"select 'only' value, '{topic}' topic"), broker)
    _save(spark.sql("select cast(null as string) value, 'tombstone' key"), broker, topic=topic)
    pairs = {(each.key, each.value) for each in _records(broker, topic)}
    assert pairs == {(b"k", b"v"), (b"tombstone", None), (None, b"only")}


def test_keys_go_where_every_client_sends_them(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic
) -> None:
    ours, theirs = new_topic(5), new_topic(5)
    _save(spark.range(50).selectExpr("concat('key', id) key", "'v' value"), broker, topic=ours)
    with Producer(broker.bootstrap) as producer:
        for number in range(50):
            producer.send(theirs, b"v", key=b"key%d" % number)
    places = [{each.key: each.partition for each in _records(broker, topic)} for topic in (ours, theirs)]
    assert places[0] == places[1]
    assert len(places[0]) == 50


@pytest.mark.parametrize(
    ("sql", "options", "says"),
    [
        ("select 'k' key", {"topic": "a"}, "no column value"),
        ("select 'v' value", {}, "which topic?"),
        ("select 1 value", {"topic": "a"}, "column value is int: make it binary or string"),
        ("select 'v' value, 'x' partition", {"topic": "a"}, "column partition is string: make it int"),
        ("select 'v' value, cast(null as string) topic", {}, "a row has no topic"),
    ],
)
def test_rows_that_cannot_be_records_say_what_to_write(
    spark: Any, broker: BrokerProcess, sql: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(PySparkException) as error:
        _save(spark.sql(sql), broker, **options)
    assert says in str(error.value)


def test_a_batch_write_that_fails_leaves_nothing_visible(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    frame = spark.range(0, 1000, 1, 4).selectExpr(
        "if(id = 999, raise_error('the last row breaks'), cast(id as string)) value"
    )
    with pytest.raises(PySparkException, match="the last row breaks"):
        _save(frame, broker, topic=topic)
    assert _records(broker, topic) == []
    _save(spark.range(3).selectExpr("cast(id as string) value"), broker, topic=topic)
    expected = [b"0", b"1", b"2"]  # a task that is late may hold readers back until it finds that it is
    assert eventually(lambda: sorted(each.value or b"" for each in _records(broker, topic)) == expected, 30)


def test_a_write_without_an_id_leaves_no_trace(spark: Any) -> None:
    with BrokerProcess() as broker, Admin(broker.bootstrap) as admin:  # no late task of another write
        admin.create_topic("rows")
        _save(spark.sql("select 'v' value"), broker, topic="rows")
        ledger = Ledger(admin, broker.bootstrap, {})
        assert ledger.unfinished() == []  # reads all of it
        scans = [scan for (bootstrap, _), scan in ledgers._scans.items() if bootstrap == broker.bootstrap]
        assert any(scan.next_offset for scan in scans)
        assert [scan.states for scan in scans if scan.states] == []


def test_a_late_task_of_a_write_that_is_over_leaves_nothing(
    broker: BrokerProcess, admin: Admin, new_topic: NewTopic
) -> None:
    topic = new_topic()
    given = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    schema = StructType([StructField("value", StringType())])
    sink = TopicSink(write_options(given, streaming=False), schema, overwrite=False)
    rows = pyarrow.record_batch({"value": ["late"]})

    def rows_of_a_slow_task() -> Iterator[pyarrow.RecordBatch]:
        yield rows
        sink.abort([])  # the driver has given up meanwhile

    for late in (rows_of_a_slow_task(), iter([rows])):
        with pytest.raises(Superseded, match="ended or given up"):
            sink.write(late)
    query = sink._batch.query
    states = {each.state for each in admin.transactions() if is_of_a_task(each.id, query)}
    assert states == {"CompleteAbort"}
    assert Ledger(admin, broker.bootstrap, {}).state(query) is None


@pytest.mark.parametrize("two_phase", ["true", "false"])
def test_a_transaction_waits_for_its_decision_for_ever_where_brokers_allow_two_phases(
    tmp_path: Path, two_phase: str
) -> None:
    settings = {
        "transaction.two.phase.commit.enable": "true",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    with BrokerProcess(tmp_path, settings) as broker, Admin(broker.bootstrap) as admin:
        admin.create_topic("rows", partitions=1)
        given = {
            "kafka.bootstrap.servers": broker.bootstrap,
            "kafka.transaction.two.phase.commit.enable": two_phase,
            "kafka.transaction.timeout.ms": "300",
            "topic": "rows",
        }
        schema = StructType([StructField("value", StringType())])
        sink = TopicSink(write_options(given, streaming=False), schema, overwrite=False)
        done = sink.write(iter([pyarrow.record_batch({"value": ["slow"]})]))
        if two_phase == "true":
            time.sleep(1)  # more than three times as long as another one may take
            sink.commit([done])
            assert [each.value for each in _records(broker, "rows")] == [b"slow"]
        else:
            assert eventually(lambda: not admin.transactions(["Ongoing"]))
            with pytest.raises(Undecidable, match=r"took longer than kafka\.transaction\.timeout\.ms"):
                sink.commit([done])
            assert _records(broker, "rows") == []


def test_a_write_with_an_id_is_done_once(spark: Any, broker: BrokerProcess, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    for _ in range(2):
        rows = spark.range(0, 20, 1, 2).selectExpr("cast(id as string) value")
        _save(rows, broker, topic=topic, writeId=f"load-{topic}")
    assert len(_records(broker, topic)) == 20


def test_a_stream_from_topic_to_topic_is_exactly_once_over_restarts(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic, tmp_path: Path
) -> None:
    source, sink = new_topic(2), new_topic(2)
    for start in (0, 100):
        with Producer(broker.bootstrap) as producer:
            for number in range(start, start + 100):
                producer.send(source, b"%d" % number, partition=number % 2)
        query = _copy(spark, broker, source, sink, tmp_path, maxOffsetsPerTrigger="30")
    assert Counter(each.value for each in _records(broker, sink)) == Counter(b"%d" % n for n in range(200))
    ids = [each.id for each in admin.transactions() if is_of_a_task(each.id, query.id)]
    assert 2 <= len(ids) < 16  # of sixteen tasks: reused from batch to batch, and run to run


def _copy(
    spark: Any,
    broker: BrokerProcess,
    source: str,
    sink: str,
    place: Path,
    *,
    delivery: str = "",
    **options: str,
) -> Any:
    brokers = {"kafka.bootstrap.servers": broker.bootstrap}
    reader = spark.readStream.format("ottla").options(**brokers, subscribe=source, startingOffsets="earliest")
    frame = reader.options(**options).load().selectExpr("key", "value")
    writer = frame.writeStream.format("ottla").options(**brokers, topic=sink)
    if delivery:
        writer = writer.option("delivery", delivery)
    query = writer.option("checkpointLocation", str(place)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def test_at_least_once_needs_no_transactions(
    spark: Any, broker: BrokerProcess, admin: Admin, new_topic: NewTopic, tmp_path: Path
) -> None:
    source, sink = new_topic(), new_topic()
    with Producer(broker.bootstrap) as producer:
        producer.send(source, b"once")
    query = _copy(spark, broker, source, sink, tmp_path, delivery="at-least-once")
    assert [each.value for each in _records(broker, sink)] == [b"once"]
    assert not [each for each in admin.transactions() if query.id in each.id]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_record_that_the_broker_refuses_fails_the_write(
    spark: Any, broker: BrokerProcess, new_topic: NewTopic, delivery: str
) -> None:
    topic = new_topic(max_message_bytes="2000")
    rows = spark.sql("select 'small' value union all select repeat('x', 5000) value")
    with pytest.raises(PySparkException, match=r"MESSAGE_TOO_LARGE|RECORD_LIST_TOO_LARGE"):
        _save(rows, broker, topic=topic, delivery=delivery)


# -- the steps of the protocol, one by one -------------------------------------------------------------------


class Steps:
    """A query's batches, made by hand: what tasks and drivers do, in an order that Spark would not show."""

    def __init__(self, broker: BrokerProcess, admin: Admin, topic: str) -> None:
        self.query = f"query-of-{topic}"
        self.admin = admin
        self.ledger = Ledger(admin, broker.bootstrap, {})
        self._broker = broker
        self._topic = topic
        options = write_options({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}, streaming=True)
        self.sink = StreamSink.__new__(StreamSink)
        self.sink._options = options

    def task(
        self, run: str, value: bytes, partition: int = 0, transactional_id: str | None = None
    ) -> Written:
        self.ledger.claim(self.query, run)
        id_ = transactional_id or self.id_of(partition)
        with Producer(self._broker.bootstrap, transactional_id=id_) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(self._topic, value)
            return Written(self.query, run, producer.detach_transaction(), skipped=False)

    def id_of(self, partition: int) -> str:
        return f"ottla-spark-task-{'0' * 12}-{partition}-{self.query}"

    def skipped(self, run: str) -> Written:
        self.ledger.claim(self.query, run)
        return Written(self.query, run, None, skipped=True)

    def values(self) -> list[bytes | None]:
        return sorted(each.value or b"" for each in _records(self._broker, self._topic))


@pytest.fixture
def steps(broker: BrokerProcess, admin: Admin, new_topic: NewTopic) -> Iterator[Steps]:
    yield Steps(broker, admin, new_topic(2))
    ledgers._scans.clear()


def test_nothing_is_visible_before_the_decision(steps: Steps) -> None:
    tasks = [steps.task("run", b"a", 0), steps.task("run", b"b", 1)]
    assert steps.values() == []
    steps.sink.commit(tasks, 0)
    assert steps.values() == [b"a", b"b"]
    assert steps.ledger.ended(steps.query) == 0


def test_a_decided_batch_is_finished_by_the_next_run(steps: Steps) -> None:
    done = [steps.task("first", b"a", 0), steps.task("first", b"b", 1)]
    opened = tuple(each.transaction for each in done if each.transaction is not None)
    state = steps.ledger.decide(steps.query, "first", 0, opened)
    steps.admin.end_transaction(state.transactions[0])  # and then the driver dies
    assert len(steps.values()) <= 1
    claimed = steps.ledger.claim(steps.query, "second")
    assert (claimed.batch, claimed.transactions) == (0, opened)
    steps.sink.commit([steps.skipped("second"), steps.skipped("second")], 0)
    assert steps.values() == [b"a", b"b"]
    steps.sink.commit([steps.skipped("second")], 0)  # once more does no harm
    assert steps.values() == [b"a", b"b"]


def test_a_driver_that_wakes_up_late_is_fenced(steps: Steps) -> None:
    late = [steps.task("first", b"old")]
    steps.sink.commit([steps.task("second", b"new")], 0)
    with pytest.raises((Superseded, Undecidable)):
        steps.sink.commit(late, 0)
    with pytest.raises(Superseded, match="taken over by a later one"):
        steps.ledger.decide(steps.query, "first", 1, ())
    with pytest.raises(Superseded):
        steps.ledger.claim(steps.query, "first")
    assert steps.values() == [b"new"]


def test_a_driver_decides_nothing_once_a_later_run_has_claimed(steps: Steps) -> None:
    late = [steps.task("first", b"old")]
    steps.ledger.claim(steps.query, "second")
    with pytest.raises(Superseded):
        steps.sink.commit(late, 0)
    steps.sink.abort(late, 0)
    steps.sink.commit([steps.task("second", b"new")], 0)
    assert steps.values() == [b"new"]


def test_a_commit_that_failed_after_its_decision_is_not_aborted(steps: Steps) -> None:
    done = [steps.task("run", b"a")]
    opened = tuple(each.transaction for each in done if each.transaction is not None)
    steps.ledger.decide(steps.query, "run", 0, opened)
    steps.sink.abort(done, 0)  # Spark calls this when commit raises
    steps.sink.commit([steps.skipped("next")], 0)
    assert steps.values() == [b"a"]


def test_a_transaction_that_is_over_before_the_decision_brings_the_batch_again(steps: Steps) -> None:
    done = [steps.task("run", b"a", 0), steps.task("run", b"b", 1)]
    steps.admin.fence_producer(steps.id_of(1))
    with pytest.raises(Undecidable, match=r"transaction\.timeout\.ms"):
        steps.sink.commit(done, 0)
    steps.sink.abort(done, 0)
    steps.sink.commit([steps.task("run", b"a", 0), steps.task("run", b"b", 1)], 0)
    assert steps.values() == [b"a", b"b"]


def test_a_decided_transaction_that_cannot_be_committed_is_told_loudly(steps: Steps) -> None:
    done = [steps.task("run", b"a", 0), steps.task("run", b"b", 1)]
    opened = tuple(each.transaction for each in done if each.transaction is not None)
    state = steps.ledger.decide(steps.query, "run", 0, opened)
    steps.admin.fence_producer(steps.id_of(1))
    with pytest.raises(LostTransaction, match="1 of its 2 transactions cannot be committed"):
        finish(steps.admin, steps.ledger, steps.query, state)
    assert steps.ledger.ended(steps.query) == -1


def test_an_attempt_that_comes_after_the_decision_aborts_nothing(steps: Steps, tmp_path: Path) -> None:
    """As when a stage is tried again while a task of the first try sleeps between ledger and first write."""
    with closing(hold_ids(tmp_path)) as sleeper, closing(hold_ids(tmp_path)) as winner:
        ids = [each.take(steps.query, "run", 0) for each in (sleeper, winner)]  # in processes of their own
    done = steps.task("run", b"winner", transactional_id=ids[1])
    assert done.transaction is not None
    state = steps.ledger.decide(steps.query, "run", 0, (done.transaction,))
    late = steps.task("run", b"late", transactional_id=ids[0])
    finish(steps.admin, steps.ledger, steps.query, state)
    drop_leftovers(steps.admin, steps.ledger, steps.query, "run", comes_again=True)
    assert steps.values() == [b"winner"]
    assert late.transaction is not None
    assert steps.admin.transaction(late.transaction.transactional_id).state == "CompleteAbort"


def test_a_driver_that_is_late_drops_nothing_of_a_later_run(steps: Steps) -> None:
    steps.task("first", b"old", partition=1)
    later = steps.task("second", b"new")
    drop_leftovers(steps.admin, steps.ledger, steps.query, "first", comes_again=True)
    steps.sink.commit([later], 0)
    assert steps.values() == [b"new"]


def test_a_driver_that_ends_a_batch_late_takes_it_for_ended(steps: Steps) -> None:
    done = steps.task("first", b"a")
    assert done.transaction is not None
    state = steps.ledger.decide(steps.query, "first", 0, (done.transaction,))
    steps.sink.commit([steps.skipped("second")], 0)
    steps.sink.commit([steps.task("second", b"b")], 1)  # under the same transactional id
    finish(steps.admin, steps.ledger, steps.query, state)
    assert steps.values() == [b"a", b"b"]


def test_what_dead_attempts_left_open_does_not_hold_back_readers(steps: Steps) -> None:
    steps.task("run", b"of a dead attempt", partition=7)
    steps.sink.commit([steps.task("run", b"a")], 0)
    assert steps.values() == [b"a"]


def test_batches_without_rows_need_no_decision(steps: Steps) -> None:
    steps.sink.commit([], 0)
    steps.ledger.claim(steps.query, "run")
    steps.sink.commit([Written(steps.query, "run", None, skipped=False)], 0)
    state = steps.ledger.state(steps.query)
    assert state is not None
    assert state.batch == -1


def test_a_decided_batch_write_is_finished_by_the_next_write_of_anybody(
    steps: Steps, spark: Any, broker: BrokerProcess, new_topic: NewTopic
) -> None:
    done = [steps.task("run", b"a")]
    opened = tuple(each.transaction for each in done if each.transaction is not None)
    steps.ledger.decide(steps.query, "run", 0, opened)
    _save(spark.sql("select 'v' value"), broker, topic=new_topic())
    assert steps.values() == [b"a"]
