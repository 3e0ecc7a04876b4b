"""One partition as its leader sees it: four offsets, an epoch, and who may read how far.

    log_start ≤ last_stable ≤ high_watermark ≤ log_end, and on a durable topic high_watermark ≤ synced

A consumer never sees a record that a power cut could take back: on a durable topic (flush.messages=1, the
default) the high watermark waits for the disk, whatever the acks of the producer were. With one replica the
high watermark is then the synced offset, else the log end. No sockets, no clock, no threads here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from ottla.log.disk_errors import is_passing
from ottla.log.partition_log import AppendResult, PartitionLog
from ottla.log.transaction_markers import build_marker
from ottla.model.configs import TopicConfig
from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_LEADER_EPOCH
from ottla.model.topics import INTERNAL_TOPICS, TopicId
from ottla.records.batch import CheckedBatch, ProduceRules
from ottla.records.compression import Codec
from ottla.replica.events import Event

log = logging.getLogger(__name__)

# By compression.type; None keeps what the producer chose.
_CODECS = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

Signal: TypeAlias = "Callable[[Partition, Event], None]"


class Partition:
    __slots__ = (
        "_in_sync_min", "_signal", "bytes_in", "bytes_out", "config", "high_watermark", "in_sync_count",
        "index", "is_internal", "leader_epoch", "log", "look_inside", "records_in", "replica_count", "rules",
        "segment_bytes", "storage_error", "topic", "topic_id", "unavailable",
    )  # fmt: skip

    def __init__(
        self, topic: str, topic_id: TopicId, index: int, log: PartitionLog, leader_epoch: int, signal: Signal
    ) -> None:
        self.topic = topic
        self.is_internal = topic in INTERNAL_TOPICS  # written by the broker only
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.leader_epoch = leader_epoch
        self.in_sync_count = 1  # replicas that hold everything up to the high watermark, this one included
        self.replica_count = 1  # in sync or not
        self.storage_error: str | None = None  # what its files failed with last
        # Once the topic is gone or its files failed: what parked requests that still hold us are answered.
        self.unavailable: Refused | None = None
        self.records_in = self.bytes_in = 0  # appended since the start
        self.bytes_out = 0  # given to fetches since the start
        self._signal = signal  # tells whoever waits what happened here
        self.high_watermark = log.log_start_offset  # how far consumers may read; only `advance` moves it
        self.set_config(log.config)
        self.advance()

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # -- the four offsets ----------------------------------------------------------------------------------

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """Where read_committed stops. Without open transactions that is the high watermark."""
        producers = self.log.producers
        if not producers.has_transactions:
            return self.high_watermark
        unstable = producers.first_unstable_offset(self.high_watermark)
        if unstable is None:
            return self.high_watermark
        return max(self.log.log_start_offset, min(self.high_watermark, unstable))

    def advance(self) -> None:
        """Moves the high watermark to what is safe now; it never goes back."""
        own = self.log
        safe = own.synced_offset if own.durable else own.log_end_offset
        if safe > self.high_watermark:
            self.high_watermark = safe
            assert own.log_start_offset <= safe <= own.log_end_offset, (str(self), safe)
            self._signal(self, Event.HIGH_WATERMARK)
            self._signal(self, Event.LAST_STABLE)

    def check_in_sync(self) -> None:
        """acks=all needs enough replicas in sync; never more than the partition has, as in Kafka 4."""
        if self.in_sync_count < self._in_sync_min and self.in_sync_count < self.replica_count:
            needed = min(self._in_sync_min, self.replica_count)
            raise Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self} has {self.in_sync_count} replicas in sync, min.insync.replicas asks for {needed}",
            )

    # -- writing -------------------------------------------------------------------------------------------

    def append(self, batches: list[CheckedBatch], now_ms: int) -> AppendResult:
        """Appends as leader; the batches have passed the topic's rules and the producers' sequences."""
        result = self.log.append(batches, self.leader_epoch, now_ms)
        self.records_in += result.last_offset - result.first_offset + 1
        for batch in batches:
            self.bytes_in += batch.size
        self._signal(self, Event.LOG_END)
        if not self.log.durable:
            self.advance()
        return result

    def end_transaction(
        self, producer_id: int, producer_epoch: int, is_commit: bool, coordinator_epoch: int, now_ms: int
    ) -> int:
        """Appends a marker; the high watermark at which it is safe. Raises Refused, OSError."""
        self.log.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        marker = build_marker(producer_id, producer_epoch, is_commit, coordinator_epoch, now_ms)
        return self.append([marker], now_ms).last_offset + 1

    def delete_records(self, before_offset: int) -> int:
        """DeleteRecords: moves the log start; -1 means up to the high watermark. Returns that."""
        if before_offset == -1:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            raise Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self} can be trimmed up to offset {self.high_watermark}, not to {before_offset}",
            )
        if before_offset > self.log.log_start_offset:
            self.log.delete_records(before_offset)
            self._signal(self, Event.LOG_START)
        return self.log.log_start_offset

    # -- settings and fencing --------------------------------------------------------------------------------

    def set_config(self, config: TopicConfig) -> None:
        self.config = config
        self.log.set_config(config)
        self.segment_bytes = config.segment_bytes
        self._in_sync_min = config.min_insync_replicas
        self.rules = ProduceRules(
            batch_bytes_max=config.max_message_bytes,
            timestamp_before_ms_max=config.message_timestamp_before_max_ms,
            timestamp_after_ms_max=config.message_timestamp_after_max_ms,
            log_append_time=config.message_timestamp_log_append,
            keys_needed=config.cleanup_compact,
            codec=_CODECS[config.compression_type],
            codec_level=config.compression_level,
        )
        self.look_inside = self.rules.look_inside  # whether a batch's header alone does not do

    def check_epoch(self, epoch: int) -> None:
        """KIP-320: the epoch the client believes in, if it names one, must be ours."""
        if epoch == NO_LEADER_EPOCH or epoch == self.leader_epoch:
            return
        if epoch < self.leader_epoch:
            raise Refused(
                ErrorCode.FENCED_LEADER_EPOCH, f"{self} is at leader epoch {self.leader_epoch}, not {epoch}"
            )
        raise Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"{self} is at leader epoch {self.leader_epoch}, not yet {epoch}"
        )

    def storage_refusal(self, error: Exception) -> Refused:
        """The answer to who wanted to use its files. Trouble that does not pass takes the partition offline;
        a full disk does not, and is logged once.
        """
        text = f"{self}: {error}"
        if not is_passing(error):
            self.go_offline(text)
        elif text != self.storage_error:
            self.storage_error = text
            log.error("%s", text)
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, text)

    def go_offline(self, reason: str) -> None:
        """Its files are not to be trusted any more. What waits here fails now; the broker goes on."""
        if self.unavailable is None:
            self.unavailable = Refused(ErrorCode.KAFKA_STORAGE_ERROR, reason)
            self.storage_error = reason
            self._signal(self, Event.STORAGE_FAILURE)

    def gone(self) -> None:
        """The topic was deleted: what waits here fails now."""
        self.unavailable = Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted")
        self._signal(self, Event.DELETION)
