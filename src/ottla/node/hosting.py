"""The partitions this broker holds, kept in step with the cluster: logs are made, reconfigured and deleted.

Follows the controller's changes after they are durable. A partition whose files cannot be read, written or
made goes offline, and so do all partitions of a directory that fails; the others serve.
"""

from __future__ import annotations

import logging
import os

from ottla.controller.changes import (
    BrokerConfigChanged,
    Change,
    PartitionsAdded,
    PartitionsChanged,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
)
from ottla.controller.cluster import TopicImage
from ottla.controller.controller import Controller
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory
from ottla.log.partition_log import PartitionLog
from ottla.model.clock import Clock
from ottla.model.config_types import LONG_MAX
from ottla.model.configs import BrokerConfig, TopicConfig, stored_topic_config
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.node.sync_rounds import SyncRounds
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.replica.partitions import OfflinePartition, Partitions
from ottla.server.parking import Parking, ParkingKey

log = logging.getLogger(__name__)


class Hosting:
    def __init__(
        self,
        controller: Controller,
        partitions: Partitions,
        directories: LogDirectories,
        rounds: SyncRounds,
        parking: Parking,
        clock: Clock,
    ) -> None:
        self.ends_moved = 0  # counts appends and new log starts, for who writes checkpoints
        self.starts_moved = 0
        self.awaiting_flush: set[PartitionLog] = set()  # written to since their last sync, under flush.ms
        self._controller = controller
        self._partitions = partitions
        self._directories = directories
        self._rounds = rounds
        self._flusher = rounds.flusher
        self._parking = parking
        self._clock = clock
        self._doomed: list[PartitionLog] = []  # of deleted topics; their files go when no sync uses them

    # -- following the cluster -------------------------------------------------------------------------------

    def host_all(self) -> None:
        """At start: every partition of ours gets its log; logs that belong to no topic any more go."""
        image = self._controller.image
        for directory in self._directories:
            for place, topic_id in list(directory.topic_ids.items()):
                if topic_id not in image.topics_by_id:
                    log.info("%s is left from a deleted topic and is removed", place)
                    self._delete_log(directory, place)
        for topic in list(image.topics.values()):
            self._host(topic, 0, is_new=False)

    def follow(self, change: Change) -> None:
        match change:
            case TopicCreated(topic):
                self._host(topic, 0, is_new=True)
            case PartitionsAdded(topic, first_partition):
                self._host(topic, first_partition, is_new=True)
            case TopicDeleted(topic):
                self._drop(topic)
            case TopicConfigChanged(topic):
                self._reconfigure(topic)
            case BrokerConfigChanged():
                for topic in self._controller.image.topics.values():
                    self._reconfigure(topic)
            case PartitionsChanged(partitions):
                for topic, index in partitions:
                    partition = self._partitions.with_id(topic.id, index)
                    if partition is not None:
                        partition.leader_epoch = topic.partitions[index].leader_epoch
            case _:
                pass

    def _host(self, topic: TopicImage, first: int, *, is_new: bool) -> None:
        config = self.config_of(topic.name)
        for index in range(first, len(topic.partitions)):
            if self._controller.broker_id in topic.partitions[index].replicas:
                self._host_one(topic, index, config, is_new)

    def _host_one(self, topic: TopicImage, index: int, config: TopicConfig, is_new: bool) -> None:
        place = TopicPartition(topic.name, index)
        try:
            partition_log = self._find_log(place, topic)
            if partition_log is None:
                problem = self._whereabouts(place, is_new)
                if problem is not None:
                    self._set_offline(OfflinePartition(topic.name, topic.id, index, problem))
                    return
                partition_log = self._create_log(place, topic, config)
        except OSError as error:
            reason = f"its files cannot be made: {error}"
            self._set_offline(OfflinePartition(topic.name, topic.id, index, reason, is_unmade=True))
            return
        image = topic.partitions[index]
        partition = Partition(topic.name, topic.id, index, partition_log, image.leader_epoch, self._signalled)
        partition.in_sync_count = len(image.isr)
        partition.replica_count = len(image.replicas)
        self._partitions.add(partition)

    def _whereabouts(self, place: TopicPartition, is_new: bool) -> str | None:
        """Why nothing may be made for a partition that has no log here; None: it may."""
        for directory in self._directories:
            if place in directory.failed:
                return str(directory.failed[place])  # a person must look, and nothing replaces it
        if not is_new and self._directories.failed:
            return f"its files may be in a directory that failed ({', '.join(self._directories.failed)})"
        return None

    def retry_unmade(self) -> None:
        """Now and then: what could not be made, because the disk was full or sick, may be possible now."""
        for offline in self._partitions.offline:
            topic = self._controller.image.topics.get(offline.topic)
            if offline.is_unmade and topic is not None and topic.id == offline.topic_id:
                self._host_one(topic, offline.index, self.config_of(offline.topic), is_new=True)
                if not self._partitions.is_offline(offline.topic, offline.index):
                    log.info("%s is online now", offline)

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings as they are now."""
        return self._controller.config

    def config_of(self, topic: str) -> TopicConfig:
        """A stored setting that no longer holds is left out and named; the topic serves without it."""
        known = self._controller.image.topics.get(topic)
        overrides = known.configs if known is not None else {}
        config, problems = stored_topic_config(overrides, self._controller.config)
        for problem in problems:
            log.error("topic %s: %s", topic, problem)
        return config

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self.config_of(topic.name)
        for index in range(len(topic.partitions)):
            partition = self._partitions.with_id(topic.id, index)
            if partition is not None and partition.config is not config:
                partition.set_config(config)
                partition.advance()
                if partition.log.durable:
                    self._flusher.mark_dirty(partition.log)  # what was written before it was
                elif config.flush_ms < LONG_MAX:
                    self.awaiting_flush.add(partition.log)

    # -- logs ------------------------------------------------------------------------------------------------

    def _find_log(self, place: TopicPartition, topic: TopicImage) -> PartitionLog | None:
        for directory in self._directories:
            if place in directory.logs and directory.topic_ids.get(place) == topic.id:
                return directory.logs[place]
        return None

    def _create_log(self, place: TopicPartition, topic: TopicImage, config: TopicConfig) -> PartitionLog:
        now_ms = self._clock.wall_ms()
        for directory in self._directories:
            if place in directory.logs and place not in directory.topic_ids:
                return directory.create(place, topic.id, config, now_ms)  # found without an id: it is ours
            if place in directory.logs:
                self._rounds.wait_for_logs()  # of the topic's earlier life, perhaps being synced right now
                self._delete_log(directory, place)
        problem: OSError | None = None
        for directory in self._directories.by_emptiness():
            try:
                created = directory.create(place, topic.id, config, now_ms)
            except OSError as error:
                problem = problem or error
                continue
            self._flusher.mark_dirty(created)
            return created
        raise problem or OSError("no log directory is left")

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            place = TopicPartition(topic.name, index)
            for directory in self._directories:
                if place in directory.failed:
                    self._rounds.wait_for_logs()
                    self._delete_log(directory, place)
            self._partitions.forget_offline(topic.name, index)
            partition = self._partitions.remove(topic.id, index)
            if partition is None:
                continue
            partition.gone()
            self._parking.notify_gone(topic.id, index)
            self._flusher.forget(partition.log)
            self._doomed.append(partition.log)

    def delete_doomed(self) -> None:
        """In every turn: files of deleted topics go, unless a sync round may be using them; then after it."""
        if not self._doomed or self._flusher.is_busy:
            return
        doomed, self._doomed = self._doomed, []
        for each in doomed:
            for directory in self._directories:
                if directory.logs.get(each.topic_partition) is each:
                    self._delete_log(directory, each.topic_partition)

    def _delete_log(self, directory: LogDirectory, place: TopicPartition) -> None:
        delay_ms = 0
        if (deleted := directory.logs.get(place)) is not None:
            delay_ms = deleted.config.file_delete_delay_ms
            self._flusher.forget(deleted)
        try:
            directory.delete(place, self._clock.wall_ms(), delay_ms)
        except OSError as error:
            log.error("the files of %s cannot be removed, do it by hand: %s", place, error)

    # -- what happens in partitions --------------------------------------------------------------------------

    def _set_offline(self, offline: OfflinePartition) -> None:
        if offline not in self._partitions.offline:
            log.error("%s is offline: %s", offline, offline.reason)
        self._partitions.set_offline(offline)

    def _take_offline(self, partition: Partition) -> None:
        """Its files failed while it was served."""
        assert partition.unavailable is not None
        reason = partition.unavailable.text
        self._set_offline(OfflinePartition(partition.topic, partition.topic_id, partition.index, reason))
        self._flusher.forget(partition.log)
        place = partition.log.topic_partition
        for directory in self._directories:
            if directory.logs.get(place) is partition.log:
                directory.set_aside(place, CorruptData(reason))
        self._parking.notify_gone(partition.topic_id, partition.index)

    def file_failed(self, path: str, error: BaseException) -> None:
        """A file could not be read outside of any request's handling: its partition goes offline."""
        for partition in list(self._partitions):
            if partition.log.directory == os.path.dirname(path):
                partition.go_offline(f"{path}: {error}")

    def directory_failed(self, directory: LogDirectory, error: BaseException) -> None:
        """All its partitions go offline; the caller sees to what happens when it was the last."""
        self._directories.fail(directory, error)
        for partition in list(self._partitions):
            if directory.logs.get(partition.log.topic_partition) is partition.log:
                partition.go_offline(f"its directory failed: {error}")

    def _signalled(self, partition: Partition, event: Event) -> None:
        self._parking.notify(ParkingKey(partition.topic_id, partition.index, event))
        if event is Event.LOG_START:
            self.starts_moved += 1
        elif event is Event.LOG_END:
            self.ends_moved += 1
            if partition.log.durable or partition.log.sync_is_due(self._clock.monotonic_ms()):
                self._flusher.mark_dirty(partition.log)
            elif partition.config.flush_ms < LONG_MAX:
                self.awaiting_flush.add(partition.log)
        elif event is Event.STORAGE_FAILURE:
            self._take_offline(partition)

    def high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        return {
            partition.log.topic_partition: partition.high_watermark
            for partition in self._partitions
            if directory.logs.get(partition.log.topic_partition) is partition.log
        }
