"""What holds for one topic: every setting that Ottla honours, as a typed field for the hot paths to read."""

from __future__ import annotations

from ottla.model.config_types import TypedValues
from ottla.model.values import dataclass


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic, resolved. Their meaning is in the table (`TOPIC_SETTINGS`)."""

    cleanup_compact: bool
    cleanup_delete: bool
    retention_ms: int  # -1: for ever
    retention_bytes: int  # of one partition; negative: no limit
    file_delete_delay_ms: int
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    preallocate: bool
    flush_messages: int
    flush_ms: int
    min_insync_replicas: int
    unclean_leader_election_enable: bool
    max_message_bytes: int
    compression_type: str  # uncompressed, gzip, snappy, lz4, zstd or producer
    compression_gzip_level: int
    compression_lz4_level: int
    compression_zstd_level: int
    message_timestamp_log_append: bool
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int

    @classmethod
    def from_values(cls, values: TypedValues) -> TopicConfig:
        policy = values.texts("cleanup.policy")
        integer, flag = values.integer, values.flag
        return cls(
            cleanup_compact="compact" in policy,
            cleanup_delete="delete" in policy,
            retention_ms=integer("retention.ms"),
            retention_bytes=integer("retention.bytes"),
            file_delete_delay_ms=integer("file.delete.delay.ms"),
            segment_bytes=values.integer_or_none("internal.segment.bytes") or integer("segment.bytes"),
            segment_ms=integer("segment.ms"),
            segment_jitter_ms=integer("segment.jitter.ms"),
            segment_index_bytes=integer("segment.index.bytes"),
            index_interval_bytes=integer("index.interval.bytes"),
            preallocate=flag("preallocate"),
            flush_messages=integer("flush.messages"),
            flush_ms=integer("flush.ms"),
            min_insync_replicas=integer("min.insync.replicas"),
            unclean_leader_election_enable=flag("unclean.leader.election.enable"),
            max_message_bytes=integer("max.message.bytes"),
            compression_type=values.text("compression.type"),
            compression_gzip_level=integer("compression.gzip.level"),
            compression_lz4_level=integer("compression.lz4.level"),
            compression_zstd_level=integer("compression.zstd.level"),
            message_timestamp_log_append=values.text("message.timestamp.type") == "LogAppendTime",
            message_timestamp_before_max_ms=integer("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms=integer("message.timestamp.after.max.ms"),
            min_cleanable_dirty_ratio=values.number("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=integer("min.compaction.lag.ms"),
            max_compaction_lag_ms=integer("max.compaction.lag.ms"),
            delete_retention_ms=integer("delete.retention.ms"),
        )

    @property
    def durable(self) -> bool:
        """Whether what is acknowledged, and what consumers see, must be on disk."""
        return self.flush_messages == 1

    @property
    def segment_ms_max(self) -> int:
        """The age at which a segment is closed: compaction with a deadline needs closed segments by then."""
        if self.cleanup_compact and self.max_compaction_lag_ms > 0:
            return min(self.segment_ms, self.max_compaction_lag_ms)
        return self.segment_ms

    @property
    def compression_level(self) -> int | None:
        """The level for `compression_type`, where it has one."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)
