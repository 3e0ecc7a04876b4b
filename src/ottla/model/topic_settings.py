"""Every setting of a topic, under Kafka's name: type, default, rule, and what it is for.

A topic that does not set one takes it from the broker, under the names in `synonyms`. The one default that
differs from Kafka's is `flush.messages`: Ottla's answer to acks=all means that the disk has it.
"""

from __future__ import annotations

from ottla.model.config_types import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    STRING,
    ConfigType,
    Importance,
    Rule,
    Setting,
    SettingTable,
    Synonym,
    Value,
    at_least,
    between,
    one_of,
    some_or_none_of,
)
from ottla.model.limits import MIB

MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_NO_TIERED_STORAGE = "Ottla keeps all data of a topic on its brokers; tiered storage is not offered"
_NO_REPLICATION_THROTTLE = "replication between brokers is not throttled yet"

TOPIC_SETTINGS: SettingTable = {}


def _define(
    name: str,
    kind: ConfigType,
    default: Value,
    doc: str,
    rule: Rule | None = None,
    *synonyms: str | Synonym,
    importance: Importance = "medium",
    unsupported: str = "",
    inert: str = "",
    internal: bool = False,
) -> None:
    TOPIC_SETTINGS[name] = Setting(
        name=name,
        type=kind,
        default=default,
        doc=doc,
        rule=rule,
        importance=importance,
        scope="topic",
        update_mode="cluster-wide",
        synonyms=tuple(Synonym(synonym) if isinstance(synonym, str) else synonym for synonym in synonyms),
        unsupported=unsupported,
        inert=inert,
        internal=internal,
    )


# ---- what is kept, and for how long

_define(
    "cleanup.policy",
    LIST,
    ("delete",),
    "What happens to old data. 'delete' drops whole segments by age or size; 'compact' keeps the newest "
    "record of each key for ever and refuses records without one; 'compact,delete' does both; empty keeps "
    "everything.",
    some_or_none_of("compact", "delete"),
    "log.cleanup.policy",
)
_define(
    "retention.ms",
    LONG,
    7 * DAY_MS,
    "How long a segment is kept after its newest record's timestamp, under the policy 'delete'; -1 is for "
    "ever. Consumers that are away for longer lose records.",
    at_least(-1),
    "log.retention.ms",
    Synonym("log.retention.minutes", MINUTE_MS),
    Synonym("log.retention.hours", HOUR_MS),
)
_define(
    "retention.bytes",
    LONG,
    -1,
    "The size of one partition above which its oldest segments are dropped, under the policy 'delete'; -1 "
    "is no limit. Multiply by partitions and replicas to get the disk space of the topic.",
    None,
    "log.retention.bytes",
)
_define(
    "file.delete.delay.ms",
    LONG,
    MINUTE_MS,
    "How long the files of a dropped segment stay on disk as `.deleted`, so that reads under way can end.",
    at_least(0),
    "log.segment.delete.delay.ms",
)

# ---- segments and indexes

_define(
    "segment.bytes",
    INT,
    1024 * MIB,
    "The size at which a partition starts a new segment file. Retention and compaction work on whole closed "
    "segments: smaller ones free space sooner and cost more files.",
    at_least(1 * MIB),
    "log.segment.bytes",
)
_define(
    "internal.segment.bytes",
    INT,
    None,
    "Replaces segment.bytes without its lower limit, so that tests see several segments without writing a "
    "MiB.",
    at_least(1),
    internal=True,
)
_define(
    "segment.ms",
    LONG,
    7 * DAY_MS,
    "The age at which a segment is closed even if it is not full, so that a quiet topic's data can expire "
    "or be compacted at all.",
    at_least(1),
    "log.roll.ms",
    Synonym("log.roll.hours", HOUR_MS),
)
_define(
    "segment.jitter.ms",
    LONG,
    0,
    "The most that is taken off segment.ms at random for each segment, so that thousands of partitions do "
    "not start new segments in the same second.",
    at_least(0),
    "log.roll.jitter.ms",
    Synonym("log.roll.jitter.hours", HOUR_MS),
)
_define(
    "segment.index.bytes",
    INT,
    10 * MIB,
    "The most that an offset or time index of a segment may take; a full index starts a new segment.",
    at_least(4),
    "log.index.size.max.bytes",
)
_define(
    "index.interval.bytes",
    INT,
    4096,
    "After how many bytes of records the next index entry is made. A larger step makes smaller indexes and a "
    "longer scan at the start of a read.",
    at_least(0),
    "log.index.interval.bytes",
)
_define(
    "preallocate",
    BOOLEAN,
    False,
    "Whether a new segment file takes its whole size on disk at once, which helps some file systems.",
    None,
    "log.preallocate",
)

# ---- durability

_define(
    "flush.messages",
    LONG,
    1,
    "After how many records a partition is synced to disk. 1, Ottla's default, means that acks=all is "
    "answered, and records are shown to consumers, only when they are on disk; syncs are shared, so this is"
    " not one sync per record. Kafka's own default, 9223372036854775807, leaves syncing to the operating "
    "system.",
    at_least(1),
    "log.flush.interval.messages",
)
_define(
    "flush.ms",
    LONG,
    LONG_MAX,
    "The longest time that records wait for a sync to disk; matters where flush.messages is above 1.",
    at_least(0),
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
)
_define(
    "min.insync.replicas",
    INT,
    1,
    "How many replicas, the leader among them, must be in sync for acks=all to be accepted. 2 of 3 replicas"
    " is the usual choice: one may fail, and nothing that was acknowledged is on a single machine.",
    at_least(1),
    "min.insync.replicas",
)
_define(
    "unclean.leader.election.enable",
    BOOLEAN,
    False,
    "Whether a replica that is not in sync may lead when no other is left: the partition works again, and "
    "acknowledged records are lost.",
    None,
    "unclean.leader.election.enable",
    inert="a partition has one replica here, which leads it as long as its files are sound",
)

# ---- records

_define(
    "max.message.bytes",
    INT,
    1 * MIB + 12,
    "The largest batch of records that is accepted, as sent (after compression).",
    at_least(0),
    "message.max.bytes",
)
_define(
    "compression.type",
    STRING,
    "producer",
    "How batches are stored. 'producer' keeps what the producer chose and costs the broker nothing; any "
    "other value makes the broker compress batches that arrive differently.",
    one_of(*COMPRESSION_TYPES),
    "compression.type",
)
_define(
    "compression.gzip.level",
    INT,
    -1,
    "How hard gzip tries when the broker compresses (compression.type=gzip); -1 is zlib's own choice.",
    Rule("from 1 to 9, or -1", lambda value: isinstance(value, int) and (1 <= value <= 9 or value == -1)),
    "compression.gzip.level",
)
_define(
    "compression.lz4.level",
    INT,
    9,
    "How hard lz4 tries when the broker compresses (compression.type=lz4).",
    between(1, 17),
    "compression.lz4.level",
)
_define(
    "compression.zstd.level",
    INT,
    3,
    "How hard zstd tries when the broker compresses (compression.type=zstd).",
    between(-131072, 22),
    "compression.zstd.level",
)
_define(
    "message.timestamp.type",
    STRING,
    "CreateTime",
    "Whose clock stamps records: the producer's (CreateTime) or the broker's when it appends "
    "(LogAppendTime).",
    one_of(*TIMESTAMP_TYPES),
    "log.message.timestamp.type",
)
_define(
    "message.timestamp.before.max.ms",
    LONG,
    LONG_MAX,
    "How far a producer's timestamp may lie behind the broker's clock before the batch is refused "
    "(CreateTime only).",
    at_least(0),
    "log.message.timestamp.before.max.ms",
)
_define(
    "message.timestamp.after.max.ms",
    LONG,
    HOUR_MS,
    "How far a producer's timestamp may lie ahead of the broker's clock before the batch is refused "
    "(CreateTime only). A record from the far future would keep its segment from ever expiring.",
    at_least(0),
    "log.message.timestamp.after.max.ms",
)
_define(
    "message.downconversion.enable",
    BOOLEAN,
    True,
    "Once let old consumers read newer records. Kafka 4 takes the setting without effect; so do we.",
    None,
    "log.message.downconversion.enable",
    importance="low",
    inert="records are never converted to older formats",
)

# ---- compaction

_define(
    "min.cleanable.dirty.ratio",
    DOUBLE,
    0.5,
    "The share of a log that must be new since the last compaction before the next one. Lower saves disk "
    "space and costs more work.",
    between(0, 1),
    "log.cleaner.min.cleanable.ratio",
)
_define(
    "min.compaction.lag.ms",
    LONG,
    0,
    "How long a record is safe from compaction, so that consumers who are not further behind see every "
    "change of a key.",
    at_least(0),
    "log.cleaner.min.compaction.lag.ms",
)
_define(
    "max.compaction.lag.ms",
    LONG,
    LONG_MAX,
    "How long a replaced or deleted record may wait for compaction, whatever the dirty ratio; set it where "
    "the law asks for deletion in time.",
    at_least(1),
    "log.cleaner.max.compaction.lag.ms",
)
_define(
    "delete.retention.ms",
    LONG,
    DAY_MS,
    "How long a compacted topic keeps a tombstone (a key without value). A consumer that reads from the "
    "start must be done by then, or it may miss deletions.",
    at_least(0),
    "log.cleaner.delete.retention.ms",
)

# ---- not offered

_define(
    "leader.replication.throttled.replicas",
    LIST,
    (),
    "The partition:broker pairs (or *) whose leaders send to followers no faster than the broker's throttle.",
    unsupported=_NO_REPLICATION_THROTTLE,
)
_define(
    "follower.replication.throttled.replicas",
    LIST,
    (),
    "The partition:broker pairs (or *) whose followers fetch no faster than the broker's throttle.",
    unsupported=_NO_REPLICATION_THROTTLE,
)
_define(
    "remote.storage.enable",
    BOOLEAN,
    False,
    "Whether closed segments move to remote storage.",
    unsupported=_NO_TIERED_STORAGE,
)
_define(
    "remote.log.copy.disable",
    BOOLEAN,
    False,
    "Whether no further segments move to remote storage.",
    unsupported=_NO_TIERED_STORAGE,
)
_define(
    "remote.log.delete.on.disable",
    BOOLEAN,
    False,
    "Whether switching remote storage off deletes what is there.",
    unsupported=_NO_TIERED_STORAGE,
)
_define(
    "local.retention.ms",
    LONG,
    -2,
    "How long segments stay on the broker's disk when remote storage has them; -2 is as long as "
    "retention.ms.",
    at_least(-2),
    "log.local.retention.ms",
    unsupported=_NO_TIERED_STORAGE,
)
_define(
    "local.retention.bytes",
    LONG,
    -2,
    "How many bytes stay on the broker's disk when remote storage has them; -2 is as many as "
    "retention.bytes.",
    at_least(-2),
    "log.local.retention.bytes",
    unsupported=_NO_TIERED_STORAGE,
)
