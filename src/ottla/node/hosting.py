"""The partitions this broker holds, kept in step with the cluster: logs are made, reconfigured and deleted.

Follows the controller's changes after they are durable; what that takes of files is `partition_files`'. A
partition whose files cannot be read, written or made goes offline, and so do all partitions of a directory
that fails; the others serve.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

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
from ottla.log.flusher import Flusher
from ottla.log.partition_log import PartitionLog
from ottla.model.clock import Clock
from ottla.model.config_types import LONG_MAX
from ottla.model.configs import TOPIC_SETTINGS, BrokerConfig, TopicConfig, stored_topic_config
from ottla.model.errors import CorruptData
from ottla.model.topics import TopicPartition
from ottla.node.partition_files import Making, PartitionFiles, Removing
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.replica.partitions import OfflinePartition, Partitions
from ottla.server.parking import Parking, ParkingKey
from ottla.server.warming import Offload

log = logging.getLogger(__name__)


class Hosting:
    def __init__(
        self,
        controller: Controller,
        partitions: Partitions,
        directories: LogDirectories,
        flusher: Flusher,
        parking: Parking,
        clock: Clock,
        file_worker: Offload,
    ) -> None:
        self.ends_moved = 0  # counts appends and new log starts, for who writes checkpoints
        self.starts_moved = 0
        self.awaiting_flush: set[PartitionLog] = set()  # written to since their last sync, under flush.ms
        self._controller = controller
        self._told = set(controller.config.warnings)
        self._partitions = partitions
        self._directories = directories
        self._flusher = flusher
        self._parking = parking
        self._clock = clock
        self._files = PartitionFiles(self, directories, flusher, clock, file_worker)
        self.make_and_remove_files = self._files.go_on  # in every turn

    # -- following the cluster -------------------------------------------------------------------------------

    def host_all(self) -> None:
        """At start: every partition of ours gets its log; logs that belong to no topic any more go."""
        image = self._controller.image
        for directory in self._directories:
            for place, topic_id in directory.topic_ids.items():
                known = image.topics.get(place.topic)  # by name too: those of old Kafkas have no id
                if known is None or known.id != topic_id:
                    log.info("%s is left from a deleted topic and is removed", place)
                    self._files.remove(Removing(directory, place, directory.logs.get(place)))
        for topic in image.topics.values():
            for index in self._own(topic, 0):
                making = Making(topic, index)
                if (found := self._find_log(making)) is not None:
                    self.made(making, found)
                elif self._directories.failed:
                    failed = ", ".join(self._directories.failed)
                    self._set_offline_for(making, f"its files may be in a directory that failed ({failed})")
                else:
                    self._make(making)
        self._files.finish_now()

    def follow(self, change: Change) -> None:
        match change:
            case TopicCreated(topic):
                log.info("topic %s is created, partitions: %d", topic.name, len(topic.partitions))
                _tell_of_vain_settings(topic)
                self._host(topic, 0)
            case PartitionsAdded(topic, first_partition):
                self._host(topic, first_partition)
            case TopicDeleted(topic):
                log.info("topic %s is deleted", topic.name)
                self._drop(topic)
            case TopicConfigChanged(topic):
                _tell_of_vain_settings(topic)
                self._reconfigure(topic)
            case BrokerConfigChanged():
                self._tell_of_news()
                for topic in self._controller.image.topics.values():
                    self._reconfigure(topic)
            case PartitionsChanged(partitions):
                for topic, index in partitions:
                    partition = self._partitions.with_id(topic.id, index)
                    if partition is not None:
                        partition.leader_epoch = topic.partitions[index].leader_epoch
            case _:
                pass

    def when_hosted(self, done: Callable[[], None]) -> None:
        """Calls `done` when the partitions of all changes so far can be used, or are known to be offline."""
        self._files.when_settled(done)

    def _host(self, topic: TopicImage, first: int) -> None:
        for index in self._own(topic, first):
            self._partitions.expect(topic.name, index)
            self._make(Making(topic, index))

    def _own(self, topic: TopicImage, first: int) -> list[int]:
        own_id = self._controller.broker_id
        return [
            index
            for index in range(first, len(topic.partitions))
            if own_id in topic.partitions[index].replicas
        ]

    def _make(self, making: Making) -> None:
        for directory in self._directories:
            if making.place in directory.failed:  # a person must look, and nothing replaces it
                self._set_offline_for(making, str(directory.failed[making.place]))
                return
        self._files.make(making)

    def is_wanted(self, making: Making) -> bool:
        known = self._controller.image.topics.get(making.topic.name)
        return known is not None and known.id == making.topic.id

    def made(self, making: Making, partition_log: PartitionLog) -> None:
        topic, index = making.topic, making.index
        image = topic.partitions[index]
        partition = Partition(topic.name, topic.id, index, partition_log, image.leader_epoch, self._signalled)
        partition.in_sync_count = len(image.isr)
        partition.replica_count = len(image.replicas)
        if self._partitions.is_offline(topic.name, index):
            log.info("%s is online now", partition)
        self._partitions.add(partition)

    def unmade(self, making: Making, problem: OSError) -> None:
        reason = f"its files cannot be made: {problem}; that is tried again every second"
        self._set_offline_for(making, reason, is_unmade=True)

    def _set_offline_for(self, making: Making, reason: str, *, is_unmade: bool = False) -> None:
        topic = making.topic
        self._set_offline(OfflinePartition(topic.name, topic.id, making.index, reason, is_unmade))

    def retry_unmade(self) -> None:
        """Now and then: what could not be made, because the disk was full or sick, may be possible now."""
        has_room = any(not directory.ballast.is_spent for directory in self._directories)
        if has_room and self._files.is_idle:
            for offline in self._partitions.offline:
                topic = self._controller.image.topics.get(offline.topic)
                if offline.is_unmade and topic is not None and topic.id == offline.topic_id:
                    self._make(Making(topic, offline.index))
            self._files.go_on()

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

    def _tell_of_news(self) -> None:
        """Settings of the broker that were taken and change nothing."""
        warnings = self._controller.config.warnings
        for warning in warnings:
            if warning not in self._told:
                log.warning("%s", warning)
        self._told = set(warnings)

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

    def _find_log(self, making: Making) -> PartitionLog | None:
        for directory in self._directories:
            if making.place in directory.logs and directory.topic_ids.get(making.place) == making.topic.id:
                return directory.logs[making.place]
        return None

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            self._partitions.forget(topic.name, index)
            partition = self._partitions.remove(topic.id, index)
            if partition is not None:
                partition.gone()
                self._parking.notify_gone(topic.id, index)
                self._flusher.forget(partition.log)
            place = TopicPartition(topic.name, index)
            for directory in self._directories:
                if partition is not None and directory.logs.get(place) is partition.log:
                    self._files.remove(Removing(directory, place, partition.log))
                elif place in directory.failed:
                    self._files.remove(Removing(directory, place, None))

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
        if self._parking:  # somebody waits for something
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


def _tell_of_vain_settings(topic: TopicImage) -> None:
    for name, value in topic.configs.items():
        setting = TOPIC_SETTINGS.get(name)
        if setting is not None and setting.inert:
            log.warning("topic %s: %s=%s has no effect: %s", topic.name, name, value, setting.inert)
