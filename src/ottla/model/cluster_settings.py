"""Settings that matter once there are several brokers (replication, coordination), and the log cleaner's."""

from __future__ import annotations

from ottla.model.config_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    LONG_MAX,
    STRING,
    ConfigType,
    Importance,
    Rule,
    Setting,
    UpdateMode,
    Value,
    at_least,
)
from ottla.model.limits import KIB, MIB

_NO_REPLICATION = "brokers do not replicate to each other yet"
_ONE_AT_A_TIME = "changes are sent to the ensemble one at a time, so that none is done twice"


def _replication(
    name: str,
    kind: ConfigType,
    default: Value,
    doc: str,
    rule: Rule | None = None,
    importance: Importance = "medium",
    update_mode: UpdateMode = "read-only",
) -> Setting:
    return Setting(name, kind, default, doc, rule, importance, update_mode=update_mode, inert=_NO_REPLICATION)


_REPLICATION = (
    _replication(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        "A follower that has not caught up for this long leaves the in-sync replicas. Shorter lets acks=all"
        " go on sooner when a broker hangs; too short makes busy followers leave and return.",
        None,
        "high",
    ),
    _replication(
        "replica.fetch.max.bytes",
        INT,
        1 * MIB,
        "How much a follower asks for per partition in one Fetch (one batch is always whole).",
        at_least(0),
    ),
    _replication(
        "replica.fetch.response.max.bytes",
        INT,
        10 * MIB,
        "How much a follower asks for in one Fetch over all partitions.",
        at_least(0),
    ),
    _replication(
        "replica.fetch.min.bytes",
        INT,
        1,
        "How much a follower's Fetch waits for, up to replica.fetch.wait.max.ms.",
        None,
        "high",
    ),
    _replication(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        "How long a follower's Fetch may wait at the leader; at most replica.lag.time.max.ms.",
        None,
        "high",
    ),
    _replication(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        "How long a follower leaves a partition alone after an error.",
        at_least(0),
    ),
    _replication(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        "How long a follower waits for the leader's answer; at least replica.fetch.wait.max.ms.",
        None,
        "high",
    ),
    _replication(
        "replica.socket.receive.buffer.bytes",
        INT,
        64 * KIB,
        "SO_RCVBUF of a follower's connection.",
        None,
        "high",
    ),
    _replication(
        "num.replica.fetchers",
        INT,
        1,
        "How many connections a follower uses to one leader.",
        None,
        "high",
        "cluster-wide",
    ),
    _replication(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5000,
        "How often high watermarks are written to disk.",
        None,
        "high",
    ),
    _replication("replica.selector.class", STRING, None, "Which replica a consumer is sent to read from."),
    _replication(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        "Whether leadership goes back to the preferred replicas by itself when brokers have come back.",
        None,
        "high",
    ),
    _replication(
        "leader.imbalance.per.broker.percentage",
        INT,
        10,
        "The share of a broker's partitions that others lead in its place, above which leadership goes back.",
        None,
        "high",
    ),
    _replication(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        "How often that share is looked at.",
        at_least(1),
        "high",
    ),
    _replication(
        "controller.socket.timeout.ms", INT, 30_000, "How long the controller waits for a broker's answer."
    ),
    _replication(
        "request.timeout.ms",
        INT,
        30_000,
        "How long a broker waits for another broker's answer.",
        None,
        "high",
    ),
    _replication(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        "Whether a stopping broker first hands its leaderships to others.",
    ),
    _replication("controlled.shutdown.max.retries", INT, 3, "How often it tries to."),
    _replication("controlled.shutdown.retry.backoff.ms", LONG, 5000, "How long it waits between two tries."),
)

_COORDINATION = (
    Setting(
        "zookeeper.connect",
        STRING,
        None,
        "The ZooKeeper ensemble that keeps the cluster's state: host:port,host:port/path. Not set: the "
        "coordination service inside the broker keeps it.",
        importance="high",
    ),
    Setting(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        "After how long without a sign of life the ensemble takes this broker for dead.",
        importance="high",
    ),
    Setting(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        "How long a start waits for the ensemble; not set: as long as the session timeout.",
        importance="high",
    ),
    Setting(
        "zookeeper.max.in.flight.requests",
        INT,
        10,
        "How many requests are sent to the ensemble before the first is answered.",
        at_least(1),
        "high",
        inert=_ONE_AT_A_TIME,
    ),
)


def _cleaner(name: str, kind: ConfigType, default: Value, doc: str, rule: Rule | None = None) -> Setting:
    return Setting(f"log.cleaner.{name}", kind, default, doc, rule, update_mode="cluster-wide")


_CLEANER = (
    Setting(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        "Whether compacted topics are cleaned; without it they grow for ever.",
    ),
    _cleaner("threads", INT, 1, "How many logs are cleaned at the same time.", at_least(0)),
    _cleaner(
        "io.max.bytes.per.second",
        DOUBLE,
        1.7976931348623157e308,
        "How much the cleaner reads and writes per second, so that it leaves the disk to clients.",
    ),
    _cleaner(
        "dedupe.buffer.size",
        LONG,
        128 * MIB,
        "Memory for the cleaner's map of keys, over all its threads; more cleans more of a log in one pass.",
    ),
    _cleaner("io.buffer.load.factor", DOUBLE, 0.9, "How full that map may get."),
    _cleaner("io.buffer.size", INT, 512 * KIB, "Memory for the cleaner's reads and writes.", at_least(0)),
    _cleaner(
        "backoff.ms", LONG, 15_000, "How long the cleaner rests when there is nothing to clean.", at_least(0)
    ),
)

_THROTTLES = tuple(
    Setting(
        name,
        LONG,
        LONG_MAX,
        f"Bytes per second for {what}.",
        at_least(0),
        update_mode="per-broker",
        unsupported="replication between brokers is not throttled yet",
    )
    for name, what in (
        ("leader.replication.throttled.rate", "what leaders send of throttled partitions"),
        ("follower.replication.throttled.rate", "what followers fetch of throttled partitions"),
        ("replica.alter.log.dirs.io.max.bytes.per.second", "moving partitions between directories"),
    )
)

CLUSTER_SETTINGS = (*_REPLICATION, *_COORDINATION, *_CLEANER, *_THROTTLES)
