"""Settings of the coordinators: consumer groups and their offsets, producer ids and transactions."""

from __future__ import annotations

from ottla.model.config_types import (
    BOOLEAN,
    INT,
    INT_MAX,
    LIST,
    LONG,
    SHORT,
    STRING,
    ConfigType,
    Importance,
    Rule,
    Setting,
    Value,
    at_least,
    between,
    one_of,
    some_of,
)
from ottla.model.limits import MIB
from ottla.model.topic_settings import DAY_MS, HOUR_MS, MINUTE_MS

_NO_GROUP_SETTINGS = "groups have no settings of their own yet, so there is nothing to bound"


def _group(
    name: str,
    kind: ConfigType,
    default: Value,
    doc: str,
    rule: Rule | None = None,
    importance: Importance = "medium",
    inert: str = "",
) -> Setting:
    return Setting(name, kind, default, doc, rule, importance, inert=inert)


_GROUPS = (
    _group(
        "group.min.session.timeout.ms",
        INT,
        6000,
        "The shortest session timeout a consumer may ask for; shorter ones find dead members sooner and "
        "need more heartbeats.",
    ),
    _group(
        "group.max.session.timeout.ms",
        INT,
        30 * MINUTE_MS,
        "The longest session timeout a consumer may ask for.",
    ),
    _group(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        "How long an empty group waits for more members after the first has joined; 0 makes tests and demos"
        " start at once.",
    ),
    _group("group.max.size", INT, INT_MAX, "How many members a classic group may have.", at_least(1)),
    _group(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer"),
        "Which group protocols are offered.",
        Rule(
            "one or more of classic, consumer, 'classic' among them",
            lambda value: (
                isinstance(value, tuple) and "classic" in value and set(value) <= {"classic", "consumer"}
            ),
        ),
    ),
    _group(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        "After how long without a heartbeat a member of the new protocol is taken for dead.",
        at_least(1),
    ),
    _group(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        "The shortest that a group may set.",
        at_least(1),
        inert=_NO_GROUP_SETTINGS,
    ),
    _group(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        "The longest that a group may set.",
        at_least(1),
        inert=_NO_GROUP_SETTINGS,
    ),
    _group(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        "How often members of the new protocol send heartbeats.",
        at_least(1),
    ),
    _group(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        "The shortest interval that a group may set.",
        at_least(1),
        inert=_NO_GROUP_SETTINGS,
    ),
    _group(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        "The longest interval that a group may set.",
        at_least(1),
        inert=_NO_GROUP_SETTINGS,
    ),
    _group(
        "group.consumer.max.size",
        INT,
        INT_MAX,
        "How many members a group of the new protocol may have.",
        at_least(1),
    ),
    _group(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        "The assignors that the broker offers to groups of the new protocol; the first is the default.",
        some_of("uniform", "range"),
    ),
    _group(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        "Whether a group with members can go from the classic protocol to the new one, or back.",
        one_of("disabled", "upgrade", "downgrade", "bidirectional"),
    ),
    _group(
        "offset.metadata.max.bytes",
        INT,
        4096,
        "The longest note that a consumer may store with an offset.",
        None,
        "high",
    ),
    _group(
        "offsets.retention.minutes",
        INT,
        7 * 24 * 60,
        "How long the offsets of an empty group are kept; a group that returns later starts anew.",
        at_least(1),
        "high",
    ),
    _group(
        "offsets.retention.check.interval.ms",
        LONG,
        10 * MINUTE_MS,
        "How often that is checked.",
        at_least(1),
        "high",
    ),
    _group(
        "offsets.topic.num.partitions",
        INT,
        50,
        "Partitions of __consumer_offsets. Fixed once the topic exists: it decides which broker serves "
        "which group.",
        at_least(1),
        "high",
    ),
    _group(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        "Replicas of __consumer_offsets; as many as there are brokers, when those are fewer.",
        at_least(1),
        "high",
    ),
    _group(
        "offsets.topic.segment.bytes",
        INT,
        100 * MIB,
        "Segment size of __consumer_offsets; small, so that groups load fast.",
        at_least(MIB),
        "high",
    ),
    _group(
        "offsets.topic.compression.codec",
        INT,
        0,
        "How offset commits are compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        between(0, 4),
        "high",
    ),
    _group(
        "offsets.load.buffer.size",
        INT,
        5 * MIB,
        "How much is read at once when groups load.",
        at_least(1),
        "high",
    ),
    _group(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        "How long a commit may wait for its replicas.",
        at_least(1),
        "high",
    ),
)


_TRANSACTIONS = (
    Setting(
        "producer.id.expiration.ms",
        INT,
        DAY_MS,
        "How long a partition remembers an idempotent producer that sends nothing, to tell its retries from"
        " new batches.",
        at_least(1),
        "low",
        update_mode="cluster-wide",
    ),
    Setting(
        "producer.id.expiration.check.interval.ms",
        INT,
        10 * MINUTE_MS,
        "How often forgotten producers are looked for.",
        at_least(1),
        "low",
        internal=True,
    ),
    Setting(
        "transactional.id.expiration.ms",
        INT,
        7 * DAY_MS,
        "How long an unused transactional id is remembered.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.max.timeout.ms",
        INT,
        15 * MINUTE_MS,
        "The longest transaction a producer may ask for; an open one holds back consumers that read "
        "committed records.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.state.log.num.partitions",
        INT,
        50,
        "Partitions of __transaction_state. Fixed once the topic exists.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.state.log.replication.factor",
        SHORT,
        3,
        "Replicas of __transaction_state; as many as there are brokers, when those are fewer.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.state.log.min.isr",
        INT,
        2,
        "How many replicas of __transaction_state must be in sync; at most as many as it has.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        INT,
        100 * MIB,
        "Segment size of __transaction_state.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.state.log.load.buffer.size",
        INT,
        5 * MIB,
        "How much is read at once when transactions load.",
        at_least(1),
        "high",
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        10_000,
        "How often transactions that ran out of time are aborted.",
        at_least(1),
        "low",
        inert="a transaction is aborted when its time is up, without a look at all of them",
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        HOUR_MS,
        "How often forgotten transactional ids are removed.",
        at_least(1),
        "low",
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        "Whether producers may take part in the two-phase commit of an outside coordinator (KIP-939): their "
        "transactions never run out of time.",
        None,
        "low",
    ),
    Setting(
        "transaction.partition.verification.enable",
        BOOLEAN,
        True,
        "Whether a batch of a transaction is written only to partitions that the transaction has named "
        "(KIP-890).",
        None,
        "low",
        update_mode="cluster-wide",
    ),
)

COORDINATOR_SETTINGS = (*_GROUPS, *_TRANSACTIONS)
