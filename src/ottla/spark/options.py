"""Options of `.format("ottla")`: those of Spark's own Kafka connector, checked, with texts that say what to
write.

Spark gives option names in lower case. Names that Spark itself adds to a sink's options are let through.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.client.errors import InvalidSetting
from ottla.client.settings import CONSUMER_SETTINGS, PRODUCER_SETTINGS, load
from ottla.model.config_types import SettingTable
from ottla.model.topics import topic_name_problem
from ottla.spark.columns import HEADERS, READABLE, columns_named
from ottla.spark.errors import InvalidOption
from ottla.spark.option_values import duration_ms, flag, positive, timestamp_ms
from ottla.spark.places import EARLIEST, LATEST, Places, by_partition, by_time, parse_places

_CLIENT_PREFIX = "kafka."
_BOOTSTRAP = "kafka.bootstrap.servers"
_TOPICS = ("assign", "subscribe", "subscribePattern")
_ENDS = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_STREAM_ONLY = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")

_READING = (
    *_TOPICS,
    *_ENDS,
    *_STREAM_ONLY,
    "path",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "columns",
    "mirrorProgress",
    "kafkaConsumer.pollTimeoutMs",
    # Taken so that a job need not change: our client tries again by itself, within default.api.timeout.ms.
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
_WRITING = ("topic", "includeHeaders", "delivery", "writeId", "checkpointLocation", "queryName", "path")

# Spark hides passwords in its plans, also within sasl.jaas.config; a key it would show.
_SHOWN_IN_PLANS = {
    "ssl.keystore.key": "Spark would show it in its plans; write kafka.ssl.keystore.location, a file"
}
_OWNED_BY_SOURCE = {
    **_SHOWN_IN_PLANS,
    "auto.offset.reset": "say where to start with startingOffsets",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint; the group only mirrors them",
    "key.deserializer": "keys arrive as binary; cast them in the query",
    "value.deserializer": "values arrive as binary; cast them in the query",
    "interceptor.classes": "transform the rows in the query instead",
}
_OWNED_BY_SINK = {
    **_SHOWN_IN_PLANS,
    "key.serializer": "give the column key as string or binary",
    "value.serializer": "give the column value as string or binary",
    "transactional.id": "the sink names its transactions after the query",
    "interceptor.classes": "transform the rows in the query instead",
}

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"


@dataclass(frozen=True)
class Subscription:
    """Which partitions: exactly one of the three, or the topics under a path."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Mapping[str, tuple[int, ...]] | None = None

    def text(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern}"
        return ",".join(self.topics if self.assigned is None else self.assigned)


@dataclass(frozen=True)
class ReadOptions:
    bootstrap: str  # "" when files are read
    path: str | None
    subscription: Subscription
    start: Places
    end: Places
    columns: tuple[str, ...]
    max_offsets: int | None = None  # of one micro-batch
    min_offsets: int | None = None
    trigger_delay_ms_max: int = 15 * 60_000
    min_partitions: int | None = None
    range_records_max: int | None = None
    fail_on_data_loss: bool = True
    group_id: str | None = None  # of the mirrored progress; None: named after the query
    group_prefix: str = "spark-ottla-source"
    mirrors_progress: bool = True
    poll_timeout_ms: int = 120_000  # a range that brings nothing for so long fails its task
    client: Mapping[str, str] = field(default_factory=dict, repr=False)  # settings of the consumer

    @property
    def reads_committed(self) -> bool:
        return self.client.get("isolation.level") != "read_uncommitted"


@dataclass(frozen=True)
class WriteOptions:
    bootstrap: str
    topic: str | None  # None: each row names its own
    exactly_once: bool
    write_id: str | None  # makes a batch write repeatable
    client: Mapping[str, str] = field(default_factory=dict, repr=False)  # settings of the producer


def read_options(given: Mapping[str, str], *, streaming: bool) -> ReadOptions:
    options = _known(given, _READING)
    path = options.get("path")
    if streaming and path is not None:
        raise InvalidOption(
            f"path reads files once; a stream needs a broker: write {_BOOTSTRAP} in the place of path"
        )
    client = _client_settings(given, CONSUMER_SETTINGS, _OWNED_BY_SOURCE)
    group_id = client.pop("group.id", None)
    if group_id is not None and "groupIdPrefix" in options:
        raise InvalidOption("groupIdPrefix has no effect beside kafka.group.id: leave one of them out")
    mirrors_progress = flag("mirrorProgress", options.get("mirrorProgress", "true"))
    if not mirrors_progress and (group_id is not None or "groupIdPrefix" in options):
        raise InvalidOption(
            "without mirrorProgress there is no group: leave kafka.group.id and groupIdPrefix out"
        )
    _refuse_for_mode(options, streaming=streaming)
    start, end = _places(options, streaming=streaming)
    return ReadOptions(
        bootstrap=_place_of_data(given, path),
        path=path,
        subscription=_subscription(options),
        start=start,
        end=end,
        columns=read_columns(given),
        max_offsets=positive("maxOffsetsPerTrigger", options.get("maxOffsetsPerTrigger")),
        min_offsets=positive("minOffsetsPerTrigger", options.get("minOffsetsPerTrigger")),
        trigger_delay_ms_max=duration_ms("maxTriggerDelay", options.get("maxTriggerDelay", "15m")),
        min_partitions=positive("minPartitions", options.get("minPartitions")),
        range_records_max=positive("maxRecordsPerPartition", options.get("maxRecordsPerPartition")),
        fail_on_data_loss=flag("failOnDataLoss", options.get("failOnDataLoss", "true")),
        group_id=group_id,
        group_prefix=options.get("groupIdPrefix", "spark-ottla-source"),
        mirrors_progress=mirrors_progress,
        poll_timeout_ms=positive("kafkaConsumer.pollTimeoutMs", options.get("kafkaConsumer.pollTimeoutMs"))
        or 120_000,
        client={"isolation.level": "read_committed", **client},
    )


def refuse_secrets(given: Mapping[str, str]) -> None:
    """Before there is a plan that would show them. Raises InvalidOption."""
    for setting, reason in _SHOWN_IN_PLANS.items():
        if f"{_CLIENT_PREFIX}{setting}" in given:
            raise InvalidOption(f"{_CLIENT_PREFIX}{setting} cannot be set: {reason}")


def read_columns(given: Mapping[str, str]) -> tuple[str, ...]:
    """The columns that options ask for, before it is known whether they are for a batch or a stream."""
    headers = flag("includeHeaders", given.get("includeheaders", "false"))
    return _columns(given.get("columns"), headers=headers)


def check_chosen(given: Mapping[str, str], columns: tuple[str, ...]) -> None:
    """Whether a schema, which has these columns, says the same as the options. Raises InvalidOption."""
    if "columns" in given and read_columns(given) != columns:
        raise InvalidOption("columns and the schema contradict each other: write one of them")
    if flag("includeHeaders", given.get("includeheaders", "false")) and HEADERS not in columns:
        raise InvalidOption("includeHeaders contradicts the schema: name headers there, or leave it out")


def write_options(given: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    options = _known(given, _WRITING)
    if "path" in options:
        raise InvalidOption(f"records are written through a broker: write {_BOOTSTRAP} in the place of path")
    topic = options.get("topic")
    if topic is not None and (problem := topic_name_problem(topic)):
        raise InvalidOption(f"topic: {problem}")
    delivery = options.get("delivery", EXACTLY_ONCE)
    if delivery not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise InvalidOption(f"delivery is {delivery!r}: write {EXACTLY_ONCE} or {AT_LEAST_ONCE}")
    write_id = options.get("writeId")
    if write_id is not None and (streaming or delivery != EXACTLY_ONCE):
        raise InvalidOption("writeId makes an exactly-once batch write repeatable: leave it out here")
    client = _client_settings(given, PRODUCER_SETTINGS, _OWNED_BY_SINK)
    if delivery == EXACTLY_ONCE:
        _refuse_with_transactions(client)
    return WriteOptions(
        bootstrap=_place_of_data(given, None),
        topic=topic,
        exactly_once=delivery == EXACTLY_ONCE,
        write_id=write_id,
        client=client,
    )


def _refuse_with_transactions(client: Mapping[str, str]) -> None:
    allowed: dict[str, Callable[[str], bool]] = {
        "acks": lambda value: value in ("all", "-1"),
        "enable.idempotence": lambda value: value.lower() == "true",
        "retries": lambda value: int(value) > 0,
        "max.in.flight.requests.per.connection": lambda value: int(value) <= 5,
    }
    for name, fits in allowed.items():
        if name in client and not fits(client[name]):
            raise InvalidOption(
                f"{_CLIENT_PREFIX}{name}={client[name]} contradicts exactly-once: leave it out, or write "
                f"delivery={AT_LEAST_ONCE}"
            )


# -- names ---------------------------------------------------------------------------------------------------


def _known(given: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """The given options under their written names. Raises for a name that nobody has."""
    written = {name.lower(): name for name in names}
    options = {}
    for name, value in given.items():
        if name.startswith(_CLIENT_PREFIX):
            continue
        if name not in written:
            near = difflib.get_close_matches(name, [*written, _BOOTSTRAP], 1)
            hint = f": did you mean {written.get(near[0], near[0])}?" if near else _all_names(name, names)
            raise InvalidOption(f"there is no option {name!r}{hint}")
        options[written[name]] = value
    return options


def _all_names(name: str, names: tuple[str, ...]) -> str:
    if name in CONSUMER_SETTINGS or name in PRODUCER_SETTINGS:
        return f": a client's setting is written {_CLIENT_PREFIX}{name}"
    return (
        f". Options are {', '.join(sorted(names))}, and a client's settings with the prefix {_CLIENT_PREFIX}"
    )


def _client_settings(
    given: Mapping[str, str], table: SettingTable, owned: Mapping[str, str]
) -> dict[str, str]:
    settings = {}
    for name, value in given.items():
        if not name.startswith(_CLIENT_PREFIX) or name == _BOOTSTRAP:
            continue
        setting = name.removeprefix(_CLIENT_PREFIX)
        if setting in owned:
            raise InvalidOption(f"{name} cannot be set: {owned[setting]}")
        settings[setting] = value
    try:
        load(settings, table)
    except InvalidSetting as error:
        raise InvalidOption(f"{_CLIENT_PREFIX}*: {error}") from None
    return settings


def _place_of_data(given: Mapping[str, str], path: str | None) -> str:
    bootstrap = given.get(_BOOTSTRAP, "").strip()
    if path is not None:
        if bootstrap:
            raise InvalidOption(f"path and {_BOOTSTRAP} contradict each other: write one of them")
        return ""
    if not bootstrap:
        raise InvalidOption(
            f"where are the brokers? write .option('{_BOOTSTRAP}', 'localhost:9092'), with your address"
        )
    return bootstrap


# -- topics --------------------------------------------------------------------------------------------------


def _subscription(options: Mapping[str, str]) -> Subscription:
    chosen = [name for name in _TOPICS if name in options]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none"
        raise InvalidOption(f"write exactly one of subscribe, subscribePattern and assign; there is {found}")
    value = options[chosen[0]].strip()
    if not value:
        raise InvalidOption(f"{chosen[0]} is empty: name the topics")
    match chosen[0]:
        case "assign":
            return Subscription(assigned=_assigned(value))
        case "subscribe":
            topics = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
            for name in topics:
                if problem := topic_name_problem(name):
                    raise InvalidOption(f"subscribe: {problem}; separate topics by commas")
            if not topics:
                raise InvalidOption("subscribe is empty: name the topics, separated by commas")
            return Subscription(topics=topics)
        case _:
            try:
                re.compile(value)
            except re.error as error:
                raise InvalidOption(
                    f"subscribePattern is no regular expression: {error}; for example orders-.*"
                ) from None
            return Subscription(pattern=value)


def _assigned(text: str) -> dict[str, tuple[int, ...]]:
    example = 'write it as {"orders":[0,1]}'
    try:
        parsed = json.loads(text)
    except ValueError:
        raise InvalidOption(f"assign is no JSON: {example}") from None
    if not isinstance(parsed, dict) or not parsed:
        raise InvalidOption(f"assign names no topics: {example}")
    for topic, partitions in parsed.items():
        numbers = isinstance(partitions, list) and all(type(each) is int and each >= 0 for each in partitions)
        if not numbers or not partitions:
            raise InvalidOption(f"assign: {topic!r} needs a list of partition numbers; {example}")
    return {topic: tuple(sorted(set(partitions))) for topic, partitions in sorted(parsed.items())}


# -- places --------------------------------------------------------------------------------------------------


def _refuse_for_mode(options: Mapping[str, str], *, streaming: bool) -> None:
    for name in _ENDS if streaming else _STREAM_ONLY:
        if name in options:
            raise InvalidOption(
                f"{name} is for batch queries: a stream has no end; use trigger(availableNow=True) to stop"
                if streaming
                else f"{name} is for streams: a batch query reads all of its range; use endingOffsets"
            )
    if "maxOffsetsPerTrigger" in options and "minOffsetsPerTrigger" in options:
        least = positive("minOffsetsPerTrigger", options["minOffsetsPerTrigger"]) or 0
        most = positive("maxOffsetsPerTrigger", options["maxOffsetsPerTrigger"]) or 0
        if least > most:
            raise InvalidOption(
                f"minOffsetsPerTrigger {least} is more than maxOffsetsPerTrigger {most}: lower the first"
            )


def _places(options: Mapping[str, str], *, streaming: bool) -> tuple[Places, Places]:
    """Of the three ways to say a start, a single time comes first, then times by partition (as in Spark)."""
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise InvalidOption(f"startingOffsetsByTimestampStrategy is {strategy!r}: write error or latest")
    if "startingTimestamp" in options:
        moment = timestamp_ms("startingTimestamp", options["startingTimestamp"])
        start = by_time("startingTimestamp", moment, missing=strategy)
    elif "startingOffsetsByTimestamp" in options:
        start = by_partition(
            "startingOffsetsByTimestamp",
            options["startingOffsetsByTimestamp"],
            times=True,
            missing=strategy,
        )
    else:
        text = options.get("startingOffsets", "latest" if streaming else "earliest")
        start = parse_places("startingOffsets", text, words=(EARLIEST, LATEST) if streaming else (EARLIEST,))
    if "endingTimestamp" in options:
        moment = timestamp_ms("endingTimestamp", options["endingTimestamp"])
        end = by_time("endingTimestamp", moment, missing="latest")
    elif "endingOffsetsByTimestamp" in options:
        end = by_partition(
            "endingOffsetsByTimestamp", options["endingOffsetsByTimestamp"], times=True, missing="latest"
        )
    else:
        end = parse_places("endingOffsets", options.get("endingOffsets", "latest"), words=(LATEST,))
    return start, end


def _columns(text: str | None, *, headers: bool) -> tuple[str, ...]:
    if text is None:
        return READABLE if headers else tuple(name for name in READABLE if name != HEADERS)
    chosen = columns_named([name.strip() for name in text.split(",")], "columns")
    if headers and HEADERS not in chosen:
        raise InvalidOption("includeHeaders contradicts columns: name headers among the columns")
    return chosen
