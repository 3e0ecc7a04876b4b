"""Options of the Spark source and sink: those of Spark's own connector are taken, and mistakes say what to
write.
"""

from __future__ import annotations

import pytest

from ottla.model.topics import TopicPartition
from ottla.spark.errors import InvalidOption
from ottla.spark.options import Subscription, check_chosen, read_columns, read_options, write_options

BROKER = {"kafka.bootstrap.servers": "localhost:9092"}
ORDERS = {**BROKER, "subscribe": "orders"}


def lower(options: dict[str, str]) -> dict[str, str]:
    """As Spark hands them over."""
    return {name.lower(): value for name, value in options.items()}


def test_all_options_of_sparks_own_source_are_taken() -> None:
    given = {
        **ORDERS,
        "startingOffsets": '{"orders":{"0":23,"1":-2}}',
        "maxOffsetsPerTrigger": "1000",
        "minOffsetsPerTrigger": "10",
        "maxTriggerDelay": "90s",
        "minPartitions": "8",
        "maxRecordsPerPartition": "500",
        "failOnDataLoss": "false",
        "includeHeaders": "true",
        "groupIdPrefix": "mine",
        "kafkaConsumer.pollTimeoutMs": "5000",
        "fetchOffset.numRetries": "3",
        "fetchOffset.retryIntervalMs": "10",
        "kafka.fetch.max.bytes": "1000000",
    }
    options = read_options(lower(given), streaming=True)
    assert options.start.offsets == {TopicPartition("orders", 0): 23, TopicPartition("orders", 1): -2}
    assert (options.max_offsets, options.min_offsets, options.trigger_delay_ms_max) == (1000, 10, 90_000)
    assert (options.min_partitions, options.range_records_max) == (8, 500)
    assert not options.fail_on_data_loss
    assert options.columns[-1] == "headers"
    assert options.group_prefix == "mine"
    assert options.poll_timeout_ms == 5000
    assert options.client == {"isolation.level": "read_committed", "fetch.max.bytes": "1000000"}


def test_streams_start_at_the_end_and_batches_at_the_beginning() -> None:
    assert read_options(ORDERS, streaming=True).start.word == "latest"
    batch = read_options(ORDERS, streaming=False)
    assert (batch.start.word, batch.end.word) == ("earliest", "latest")


def test_one_time_goes_before_times_and_times_before_offsets() -> None:
    given = lower(
        {**ORDERS, "startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"orders":{"0":5}}'}
    )
    assert read_options(given, streaming=False).start.times_ms == {TopicPartition("orders", 0): 5}
    assert read_options({**given, "startingtimestamp": "7"}, streaming=False).start.time_ms == 7


def test_topics_are_named_in_three_ways() -> None:
    def chosen(name: str, value: str) -> Subscription:
        return read_options({**BROKER, name: value}, streaming=False).subscription

    assert chosen("subscribe", "a, b,a").topics == ("a", "b")
    assert chosen("subscribepattern", "a.*").pattern == "a.*"
    assert chosen("assign", '{"a":[1,0]}').assigned == {"a": (0, 1)}


def test_columns_are_chosen_by_name_and_headers_only_on_demand() -> None:
    assert "headers" not in read_columns({})
    assert read_columns({"columns": "offset,value"}) == ("offset", "value")


def test_committed_records_are_read_unless_told_otherwise() -> None:
    assert read_options(ORDERS, streaming=True).reads_committed
    dirty = {**ORDERS, "kafka.isolation.level": "read_uncommitted"}
    assert not read_options(dirty, streaming=True).reads_committed


@pytest.mark.parametrize(
    ("streaming", "given", "says"),
    [
        (True, {"subscribe": "a"}, "localhost:9092"),
        (True, BROKER, "exactly one of subscribe, subscribePattern and assign; there is none"),
        (True, {**ORDERS, "assign": '{"a":[0]}'}, "there is assign and subscribe"),
        (True, {**ORDERS, "startingofsets": "earliest"}, "did you mean startingOffsets?"),
        (True, {**ORDERS, "fetch.max.bytes": "1"}, "is written kafka.fetch.max.bytes"),
        (True, {**ORDERS, "zzzz": "red"}, "Options are"),
        (True, {**ORDERS, "endingoffsets": "latest"}, "availableNow"),
        (False, {**ORDERS, "maxoffsetspertrigger": "5"}, "is for streams"),
        (False, {**ORDERS, "startingoffsets": "latest"}, "write earliest, or offsets"),
        (False, {**ORDERS, "startingoffsets": '{"orders":{"0":-1}}'}, "-1 for orders-0 has no meaning"),
        (False, {**ORDERS, "endingoffsets": "earliest"}, "write latest, or offsets"),
        (True, {**ORDERS, "startingoffsets": "yesterday"}, "write earliest or latest"),
        (True, {**ORDERS, "startingoffsets": '{"orders":5}'}, '{"orders":{"0":23,"1":-2}}'),
        (True, {**ORDERS, "startingtimestamp": "2026-11-01"}, "milliseconds since 1970"),
        (True, {**ORDERS, "startingoffsetsbytimestampstrategy": "x"}, "write error or latest"),
        (True, {**ORDERS, "failondataloss": "maybe"}, "write true or false"),
        (True, {**ORDERS, "minpartitions": "0"}, "a whole number above 0"),
        (True, {**ORDERS, "maxtriggerdelay": "soon"}, "15m, 90s or 500ms"),
        (
            True,
            {**ORDERS, "minoffsetspertrigger": "9", "maxoffsetspertrigger": "5"},
            "minOffsetsPerTrigger 9 is more than maxOffsetsPerTrigger 5",
        ),
        (True, {**BROKER, "assign": '{"a":"0"}'}, '{"orders":[0,1]}'),
        (True, {**BROKER, "subscribepattern": "("}, "orders-.*"),
        (True, {**BROKER, "subscribe": "a b"}, "separate topics by commas"),
        (True, {**ORDERS, "columns": "value,colour"}, "choose from key, value"),
        (True, {**ORDERS, "kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        (True, {**ORDERS, "kafka.enable.auto.commit": "true"}, "checkpoint"),
        (True, {**ORDERS, "kafka.fetch.max.bytes": "much"}, "fetch.max.bytes"),
        (True, {**ORDERS, "kafka.group.id": "g", "groupidprefix": "p"}, "leave one of them out"),
        (True, {"path": "/data", "subscribe": "a"}, "a stream needs a broker"),
        (False, {**ORDERS, "path": "/data"}, "contradict"),
        (True, {**ORDERS, "mirrorprogress": "false", "kafka.group.id": "g"}, "there is no group"),
        (True, {**ORDERS, "columns": "value", "includeheaders": "true"}, "name headers among the columns"),
    ],
)
def test_a_mistake_says_what_to_write(streaming: bool, given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOption) as error:
        read_options(given, streaming=streaming)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("streaming", "given", "says"),
    [
        (True, {"topic": "a"}, "localhost:9092"),
        (True, {**BROKER, "topic": "a b"}, "topic name"),
        (True, {**BROKER, "delivery": "maybe"}, "exactly-once or at-least-once"),
        (True, {**BROKER, "writeid": "x"}, "batch write"),
        (False, {**BROKER, "path": "/data"}, "through a broker"),
        (True, {**BROKER, "kafka.transactional.id": "x"}, "after the query"),
        (True, {**BROKER, "subscribe": "a"}, "no option 'subscribe'"),
        (True, {**BROKER, "kafka.acks": "1"}, "kafka.acks=1 contradicts exactly-once: leave it out"),
        (True, {**BROKER, "kafka.enable.idempotence": "false"}, "delivery=at-least-once"),
        (True, {**BROKER, "kafka.retries": "0"}, "contradicts exactly-once"),
        (True, {**BROKER, "kafka.max.in.flight.requests.per.connection": "6"}, "contradicts exactly-once"),
    ],
)
def test_a_mistake_of_the_sink_says_what_to_write(streaming: bool, given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidOption) as error:
        write_options(given, streaming=streaming)
    assert says in str(error.value)


def test_settings_that_transactions_forbid_are_taken_without_them() -> None:
    given = {**BROKER, "delivery": "at-least-once", "kafka.acks": "1"}
    assert write_options(given, streaming=False).client == {"acks": "1"}


@pytest.mark.parametrize("given", [{"columns": "value,key"}, {"includeheaders": "true"}])
def test_a_schema_and_options_that_contradict_each_other(given: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="contradict"):
        check_chosen(given, ("key", "value"))
    check_chosen({"columns": "key,value", "includeheaders": "false"}, ("key", "value"))
