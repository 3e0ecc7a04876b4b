"""One broker process: opens the data, wires the rooms together, serves, and stops without losing anything.

The only place that owns threads: the caller's runs the reactor and owns all state; one syncs, two read cold
data. Everything they bring back runs on the owner's thread.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
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
from ottla.controller.producer_ids import ProducerIds
from ottla.controller.znode_formats import EndPoint
from ottla.coordination.client import LocalCoordination
from ottla.coordination.txn_log import SyncTicket as CoordinationTicket
from ottla.log.directory import LogDirectory
from ottla.log.files import Files, Lock, SystemFiles
from ottla.log.flusher import Flusher, Round
from ottla.log.partition_log import PartitionLog
from ottla.model.clock import Clock, SystemClock
from ottla.model.configs import TopicConfig
from ottla.model.errors import Refused
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.model.topics import TopicPartition
from ottla.node.settings import BrokerSettings
from ottla.node.workers import Workers
from ottla.replica.events import Event
from ottla.replica.partition import Partition
from ottla.replica.partitions import Partitions
from ottla.security.authorizer import AllowAll, Authorizer
from ottla.security.quotas import Unlimited
from ottla.server.fetch_sessions import FetchSessions
from ottla.server.kafka import KafkaApplication
from ottla.server.parking import Parking, ParkingKey
from ottla.server.reactor import Reactor, SocketOptions
from ottla.server.services import Services

log = logging.getLogger(__name__)

_LOCK = ".lock"
_COLD_READERS = 2
_DRAIN_MS_MAX = 10_000  # how long a stop waits for answers that a slow peer does not take
_HOUSEKEEPING_MS = 30_000
_RETENTION_SLICE = 256  # partitions looked at in one turn


class BrokerFailed(RuntimeError):
    """The broker cannot go on; what it acknowledged is safe. The message says what a person must do."""


class Broker:
    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.metrics = Registry()
        self.partitions = Partitions()
        self.listeners: list[Listener] = []  # as bound
        self._files = files or SystemFiles()
        self._failure: BaseException | None = None
        self._stop_asked = False
        self._bound: list[tuple[Listener, socket.socket]] = []
        self._lock: Lock | None = None  # of the coordination directory
        self._directories: list[LogDirectory] = []
        self._reactor = Reactor(self.clock, _socket_options(settings), self.metrics)
        self._syncer = Workers("sync", 1, self._reactor.post)
        self._reader = Workers("read", _COLD_READERS, self._reactor.post)
        self._parking = Parking(self._reactor.timers)
        self._authorizer = authorizer or AllowAll()
        self._doomed: list[PartitionLog] = []  # of deleted topics; their files go when no sync uses them
        self._round_over = threading.Event()  # set while no sync round of logs is running
        self._round_over.set()
        self._coordination_syncs = False  # a round of the znode log is under way
        self._changed_since_checkpoint = False
        self._sync_time = self.metrics.histogram("log.sync_round.time")

    # -- starting ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when clients can connect. Raises OSError, CorruptData or BrokerFailed."""
        try:
            self._start()
        except BaseException:
            self._abandon()
            raise

    def _start(self) -> None:
        self._bind()
        coordination_dir = os.path.abspath(self.settings.coordination_dir)
        self._files.make_directories(coordination_dir)
        self._lock = self._files.lock(os.path.join(coordination_dir, _LOCK))
        self._coordination = LocalCoordination(self._files, coordination_dir, self.clock)
        self._controller = Controller(
            self._coordination, self.clock, self.settings.config, self.settings.node_id
        )
        self._await(self._controller.start)
        self._open_directories()
        self._flusher = Flusher()
        if not all(directory.was_clean for directory in self._directories):
            self._await(self._controller.raise_leader_epochs)
        for topic in list(self._controller.image.topics.values()):
            self._host(topic, 0)
        self._controller.on_change.append(self._changed)
        self._services = self._make_services()
        self._open_listeners()
        self._reactor.turn_hooks += [self._parking.settle, self._start_syncs, self._parking.settle]
        self._reactor.timers.set(self.clock.monotonic_ms() + _HOUSEKEEPING_MS, self._keep_house)
        self.metrics.gauge("server.parked", lambda: len(self._parking))
        self.metrics.gauge("partitions", lambda: len(self.partitions))

    def _bind(self) -> None:
        """Before any data is opened: most failed starts are a second broker on the same port."""
        for listener in self.settings.listeners:
            try:
                self._bound.append((listener, self._reactor.bind(listener)))
            except OSError as error:
                raise BrokerFailed(
                    f"cannot listen on {listener}: {error.strerror}; choose another address "
                    "with --port or the setting listeners"
                ) from error

    def _await(self, operation: Callable[[Callable[[Refused | None], None]], None]) -> None:
        """Runs a controller operation to its end; only while nobody is served yet."""
        outcome: list[Refused | None] = []
        operation(outcome.append)
        self._coordination.sync()
        while not outcome:
            self._coordination.sync()
        if outcome[0] is not None:
            raise BrokerFailed(outcome[0].text)

    def _open_directories(self) -> None:
        image = self._controller.image

        def config_of(topic: str) -> TopicConfig:
            known = image.topics.get(topic)
            return self._controller.config.topic_config(known.configs if known is not None else {})

        for path in self.settings.log_dirs:
            self._directories.append(
                LogDirectory(
                    str(path),
                    self._files,
                    cluster_id=image.cluster_id,
                    node_id=self.settings.node_id,
                    config_of=config_of,
                    now_ms=self.clock.wall_ms(),
                )
            )
        for directory in self._directories:
            for partition, topic_id in list(directory.topic_ids.items()):
                if topic_id not in image.topics_by_id:
                    log.info("%s is left from a deleted topic and is removed", partition)
                    directory.delete(partition, self.clock.wall_ms(), delay_ms=0)

    def _make_services(self) -> Services:
        return Services(
            node_id=self.settings.node_id,
            clock=self.clock,
            reactor=self._reactor,
            parking=self._parking,
            partitions=self.partitions,
            directories=self._directories,
            controller=self._controller,
            authorizer=self._authorizer,
            quotas=Unlimited(),
            metrics=self.metrics,
            producer_ids=ProducerIds(self._controller),
            fetch_sessions=FetchSessions(
                self.settings.config.integer("max.incremental.fetch.session.cache.slots")
            ),
            offload_read=self._reader,
        )

    def _open_listeners(self) -> None:
        """Opens first, then registers: clients are told ports that are really open."""
        application = KafkaApplication(self._services)
        for listener, sock in self._bound:
            control = listener.name == self.settings.control_plane_listener
            self.listeners.append(self._reactor.listen(listener, application, control=control, sock=sock))
        ports = {listener.name: listener.port for listener in self.listeners}
        advertised = self.settings.advertised_as_bound(ports, socket.getfqdn())
        endpoints = [EndPoint(each.name, each.host, each.port, each.security_protocol) for each in advertised]
        self._await(lambda done: self._controller.register_broker(endpoints, self.settings.rack, done))

    # -- partitions come and go ----------------------------------------------------------------------------

    def _changed(self, change: Change) -> None:
        """The cluster changed durably: this broker follows."""
        match change:
            case TopicCreated(topic):
                self._host(topic, 0)
            case PartitionsAdded(topic, first_partition):
                self._host(topic, first_partition)
            case TopicDeleted(topic):
                self._drop(topic)
            case TopicConfigChanged(topic):
                self._reconfigure(topic)
            case BrokerConfigChanged():
                for topic in self._controller.image.topics.values():
                    self._reconfigure(topic)
            case PartitionsChanged(partitions):
                for topic, index in partitions:
                    partition = self.partitions.with_id(topic.id, index)
                    if partition is not None:
                        partition.leader_epoch = topic.partitions[index].leader_epoch
            case _:
                pass

    def _host(self, topic: TopicImage, first: int) -> None:
        config = self._controller.config.topic_config(topic.configs)
        for index in range(first, len(topic.partitions)):
            image = topic.partitions[index]
            if self.settings.node_id not in image.replicas:
                continue
            place = TopicPartition(topic.name, index)
            try:
                partition_log = self._find_log(place, topic) or self._create_log(place, topic, config)
            except OSError as error:
                log.error("%s stays offline, its files cannot be made: %s", place, error)
                continue
            if partition_log is None:
                continue
            partition = Partition(
                topic.name, topic.id, index, partition_log, image.leader_epoch, self._signalled
            )
            partition.in_sync_count = len(image.isr)
            partition.replica_count = len(image.replicas)
            self.partitions.add(partition)

    def _find_log(self, place: TopicPartition, topic: TopicImage) -> PartitionLog | None:
        for directory in self._directories:
            if place in directory.logs and directory.topic_ids.get(place) == topic.id:
                return directory.logs[place]
        return None

    def _create_log(
        self, place: TopicPartition, topic: TopicImage, config: TopicConfig
    ) -> PartitionLog | None:
        now_ms = self.clock.wall_ms()
        for directory in self._directories:
            if place in directory.failed:
                return None  # it is there, but cannot be read: a person must look, and nothing replaces it
            if place in directory.logs and place not in directory.topic_ids:
                return directory.create(place, topic.id, config, now_ms)  # found without an id: it is ours
            if place in directory.logs:
                self._round_over.wait()  # of the topic's earlier life, and perhaps being synced right now
                self._delete_log(directory, place)
        directory = min(self._directories, key=lambda each: len(each.logs))
        created = directory.create(place, topic.id, config, now_ms)
        self._flusher.mark_dirty(created)
        return created

    def _drop(self, topic: TopicImage) -> None:
        for index in range(len(topic.partitions)):
            for directory in self._directories:
                if (place := TopicPartition(topic.name, index)) in directory.failed:
                    self._delete_log(directory, place)
            partition = self.partitions.remove(topic.id, index)
            if partition is None:
                continue
            partition.gone()
            self._parking.notify_gone(topic.id, index)
            self._flusher.forget(partition.log)
            self._doomed.append(partition.log)
        self._delete_doomed()

    def _delete_doomed(self) -> None:
        """Files of deleted topics go, unless a sync round may be using them; then after it."""
        if self._flusher.is_busy:
            return
        while self._doomed:
            place = self._doomed.pop()
            for directory in self._directories:
                if directory.logs.get(place.topic_partition) is place:
                    self._delete_log(directory, place.topic_partition)

    def _delete_log(self, directory: LogDirectory, place: TopicPartition) -> None:
        delay_ms = 0
        if (deleted := directory.logs.get(place)) is not None:
            delay_ms = deleted.config.file_delete_delay_ms
            self._flusher.forget(deleted)
        try:
            directory.delete(place, self.clock.wall_ms(), delay_ms)
        except OSError as error:
            log.error("the files of %s cannot be removed, do it by hand: %s", place, error)

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self._controller.config.topic_config(topic.configs)
        for index in range(len(topic.partitions)):
            partition = self.partitions.with_id(topic.id, index)
            if partition is not None and partition.config is not config:
                partition.set_config(config)
                partition.advance()
                if partition.log.durable:
                    self._flusher.mark_dirty(partition.log)  # what was written before it was

    # -- in every turn -------------------------------------------------------------------------------------

    def _signalled(self, partition: Partition, event: Event) -> None:
        self._parking.notify(ParkingKey(partition.topic_id, partition.index, event))
        if event is Event.LOG_START:
            self._changed_since_checkpoint = True
        elif event is Event.LOG_END:
            self._changed_since_checkpoint = True
            if partition.log.durable or partition.log.sync_is_due(self.clock.monotonic_ms()):
                self._flusher.mark_dirty(partition.log)

    def _start_syncs(self) -> None:
        if not self._flusher.is_busy:
            if self._doomed:
                self._delete_doomed()
            sync_round = self._flusher.next_round(self.clock.monotonic_ms())
            if sync_round is not None:
                self._run_round(sync_round)
        ticket = self._coordination.begin_sync()
        if ticket is not None:
            self._coordination_syncs = True
            self._syncer(ticket.run, lambda error: self._coordination_synced(ticket, error))

    def _run_round(self, sync_round: Round) -> None:
        self._round_over.clear()
        began_us = self.clock.monotonic_us()

        def run() -> None:
            try:
                sync_round.run()
            finally:
                self._round_over.set()

        def finished(error: BaseException | None) -> None:
            if error is not None:
                self._fail(error)
                return
            self._sync_time.observe_us(self.clock.monotonic_us() - began_us)
            for synced in self._flusher.finish(sync_round):
                partition = self.partitions.of_log(synced)
                if partition is not None:
                    partition.advance()

        self._syncer(run, finished)

    def _coordination_synced(self, ticket: CoordinationTicket, error: BaseException | None) -> None:
        self._coordination_syncs = False
        if error is not None:
            self._fail(error)
        else:
            self._coordination.finish_sync(ticket)

    def _fail(self, error: BaseException) -> None:
        """A sync failed: what the disk holds is not known any more, so nothing further is promised."""
        log.critical("the disk did not take what was written: %s", error)
        self._failure = self._failure or error
        self._reactor.stop()

    def _keep_house(self) -> None:
        """Retention and deferred deletions, rarely; checkpoints when something changed."""
        self._reactor.timers.set(self.clock.monotonic_ms() + _HOUSEKEEPING_MS, self._keep_house)
        self._apply_retention(list(self.partitions), 0)
        for directory in self._directories:
            removal = directory.take_due_deletions(self.clock.wall_ms())
            if removal is not None:
                self._reader(removal.run, self._removed)
            if self._changed_since_checkpoint:
                writes = directory.begin_checkpoint(self._high_watermarks(directory))
                self._syncer(writes.run, self._checkpointed)
        self._changed_since_checkpoint = False

    def _apply_retention(self, partitions: list[Partition], first: int) -> None:
        """A slice per turn, so that ten thousand partitions do not hold up a request."""
        now_ms = self.clock.wall_ms()
        for partition in partitions[first : first + _RETENTION_SLICE]:
            if not partition.deleted and partition.log.apply_retention(now_ms, partition.high_watermark):
                self._changed_since_checkpoint = True
                self._flusher.mark_dirty(partition.log)
        if first + _RETENTION_SLICE < len(partitions):
            self._reactor.post(lambda: self._apply_retention(partitions, first + _RETENTION_SLICE))

    def _removed(self, error: BaseException | None) -> None:
        if error is not None:
            log.error("deleted files could not be removed: %s", error)

    def _checkpointed(self, error: BaseException | None) -> None:
        if error is not None:
            log.error("a checkpoint could not be written; the next start reads more than it must: %s", error)

    def _high_watermarks(self, directory: LogDirectory) -> dict[TopicPartition, int]:
        return {
            partition.log.topic_partition: partition.high_watermark
            for partition in self.partitions
            if directory.logs.get(partition.log.topic_partition) is partition.log
        }

    # -- running and stopping ------------------------------------------------------------------------------

    def run(self) -> None:
        """Serves until `ask_to_stop`; then everything is answered, synced and closed. Raises BrokerFailed."""
        try:
            self._reactor.run()
            if self._failure is None:
                self._drain()
            if self._failure is None:
                self._close()
        finally:
            self._abandon()
        if self._failure is not None:
            raise BrokerFailed(
                f"the disk did not take what was written ({self._failure}); check it, then start again: "
                "everything that was acknowledged is there"
            ) from self._failure

    def ask_to_stop(self) -> None:
        """From a signal handler or another thread; once is enough."""
        if not self._stop_asked:
            self._stop_asked = True
            self._reactor.post(self._reactor.stop)

    def _drain(self) -> None:
        """No new requests; what waits for the disk gets its answer, what waits for data is answered empty."""
        reactor = self._reactor
        reactor.stop_listening()
        reactor.stop_reading()
        deadline_ms = self.clock.monotonic_ms() + _DRAIN_MS_MAX
        reactor.turn(0)
        while (self._flusher.is_busy or self._coordination_syncs) and self._failure is None:
            reactor.turn(100)
        self._parking.expire_all()
        while reactor.answers_outstanding and self.clock.monotonic_ms() < deadline_ms:
            reactor.turn(100)

    def _close(self) -> None:
        """After a clean drain: everything durable, the marker that makes the next start instant."""
        self._syncer.stop()
        self._reader.stop()
        try:
            for directory in self._directories:
                directory.close(self._high_watermarks(directory))
            self._coordination.close()
        except OSError as error:
            self._fail(error)

    def _abandon(self) -> None:
        """Lets go of everything; what `_close` has not completed, the next start recovers."""
        self._syncer.abandon()
        self._reader.abandon()
        for _, sock in self._bound:
            sock.close()
        self._reactor.close()
        for directory in self._directories:
            directory.abandon()
        if self._lock is not None:
            self._lock.release()


def _socket_options(settings: BrokerSettings) -> SocketOptions:
    limits = settings.connection_limits
    return SocketOptions(
        send_buffer_bytes=settings.socket_send_buffer_bytes,
        receive_buffer_bytes=settings.socket_receive_buffer_bytes,
        listen_backlog=settings.socket_listen_backlog_size,
        request_bytes_max=settings.socket_request_bytes_max,
        queued_request_bytes_max=settings.queued_request_bytes_max,
        connections_max=limits.connections_max,
        connections_per_address_max=limits.for_address,
        idle_ms_max=settings.connections_idle_ms_max,
    )
