"""One broker process: opens the data, wires the rooms together, serves, and stops without losing anything.

The caller's thread runs the reactor and owns all state. What others (`threads`) bring back runs there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.controller.changes import BrokerConfigChanged, Change
from ottla.controller.controller import Controller
from ottla.controller.producer_ids import ProducerIds
from ottla.coordination.client import HostedCoordination, LocalCoordination
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory, NotStoppedCleanly
from ottla.log.files import Files, Lock
from ottla.log.system_files import SystemFiles
from ottla.model.clock import Clock, SystemClock
from ottla.model.health import Health
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.node.cleaning import Cleaning
from ottla.node.coordination_node import LOCK
from ottla.node.coordination_rounds import CoordinationRounds
from ottla.node.ensemble import SESSION_OVER, ControllerOperation, connect, outcome_of, take_office
from ottla.node.failures import BrokerFailed, ending_of, require
from ottla.node.hosting import Hosting
from ottla.node.housekeeping import Housekeeping
from ottla.node.ports import Ports
from ottla.node.scrubbing import Scrubbing
from ottla.node.settings import BrokerSettings
from ottla.node.socket_options import limit_connections, socket_options
from ottla.node.sync_rounds import SyncRounds
from ottla.node.threads import Threads
from ottla.node.watching import Watching
from ottla.replica.partitions import Partitions
from ottla.security.authorizer import AllowAll, Authorizer
from ottla.security.quotas import Unlimited
from ottla.server.application import Application
from ottla.server.fetch_sessions import FetchSessions
from ottla.server.kafka import KafkaApplication
from ottla.server.parking import Parking
from ottla.server.reactor import Reactor
from ottla.server.services import Services

if TYPE_CHECKING:
    from ottla.coordination.ensemble import KazooCoordination

log = logging.getLogger(__name__)

Surround = Callable[[Application, Reactor], Application]

_DRAIN_MS_MAX = 10_000  # how long a stop waits for answers that a slow peer does not take


class Broker:
    def __init__(
        self,
        settings: BrokerSettings,
        *,
        clock: Clock | None = None,
        files: Files | None = None,
        authorizer: Authorizer | None = None,
        surround: Surround | None = None,
    ) -> None:
        """`surround` may put something between the reactor and what Kafka's frames mean, as tests do."""
        self.settings = settings
        self.clock = clock or SystemClock()
        self.metrics = Registry()
        self.partitions = Partitions()
        self.health = Health()
        self._files = files or SystemFiles()
        self._failure: BaseException | None = None
        self._stop_asked = False
        self._lock: Lock | None = None  # of the coordination directory
        self._ensemble: KazooCoordination | None = None  # when the tree is not ours
        self._directories = LogDirectories()
        self._cleaning: Cleaning | None = None
        self._socket_options = socket_options(settings)
        self._reactor = Reactor(self.clock, self._socket_options, self.metrics)
        self._ports = Ports(settings, self._reactor, self.metrics)
        self._threads = Threads(self._reactor.post, self._reactor.ring_fd)
        self._reactor.offload = self._threads.reader
        self._parking = Parking(self._reactor.timers)
        self._authorizer = authorizer or AllowAll()
        self._surround = surround

    @property
    def listeners(self) -> list[Listener]:
        """For Kafka clients, as bound."""
        return self._ports.listeners

    @property
    def http(self) -> Listener | None:
        """For /metrics and its kin, as bound."""
        return self._ports.http

    @property
    def zookeeper(self) -> Listener | None:
        """For ZooKeeper clients, as bound."""
        return self._ports.zookeeper

    # -- starting ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Returns when clients can connect. Raises OSError, CorruptData or BrokerFailed."""
        try:
            self._start()
        except BaseException:
            self._abandon()
            raise

    def _start(self) -> None:
        self._ports.bind()
        self._take_office()
        self._open_logs()
        self._controller.on_change.append(self._follow)
        limit_connections(self._socket_options, self._controller.config)
        self._services = self._make_services()
        self._serve()
        self._add_gauges()
        log.info(
            "broker %d serves %d partitions on %s",
            self.settings.node_id,
            len(self.partitions),
            ", ".join(map(str, self.listeners)),
        )

    def _take_office(self) -> None:
        """Open the tree of znodes, here or elsewhere, and rebuild the controller's image from it."""
        coordination_dir = os.path.abspath(self.settings.coordination_dir)
        self._files.make_directories(coordination_dir)
        self._lock = self._files.lock(os.path.join(coordination_dir, LOCK))
        self._coordination = self._open_coordination(coordination_dir)
        self._controller = Controller(
            self._coordination, self.clock, self.settings.config, self.settings.node_id
        )
        require(take_office(self.settings.ensemble, self._controller.start, self._coordination))

    def _open_logs(self) -> None:
        self._rounds = SyncRounds(
            self._coordination_rounds(),
            self.partitions,
            self._threads.syncer,
            self._threads.sync_lane.lane,
            self.clock,
            self.metrics,
            self._fail,
            self._fail_directory,
        )
        self._hosting = Hosting(
            self._controller,
            self.partitions,
            self._directories,
            self._rounds.flusher,
            self._parking,
            self.clock,
            self._threads.file_maker,
        )
        self._reactor.file_failed = self._hosting.file_failed
        self._open_directories()
        if not all(directory.was_clean for directory in self._directories):
            self._await(self._controller.raise_leader_epochs)
        self._hosting.host_all()
        self._cleaning = self._make_cleaning()
        self.health.add("cleaner", self._cleaning.problem)
        self._controller.on_change += [self._hosting.follow, self._cleaning.follow]
        self._controller.when_hosted = self._hosting.when_hosted

    def _serve(self) -> None:
        """Ports are opened first and registered then: clients are told ports that are really open."""
        groups, transactions = self._services.groups, self._services.transactions
        self._controller.on_change += [groups.follow, transactions.follow]
        groups.start()
        transactions.start()
        application: Application = KafkaApplication(self._services)
        if self._surround is not None:
            application = self._surround(application, self._reactor)
        endpoints = self._ports.serve(application)
        self._await(lambda done: self._controller.register_broker(endpoints, self.settings.rack, done))
        if isinstance(self._coordination, LocalCoordination):  # else they have the ensemble
            self._ports.open_zookeeper(self._coordination)
        self._housekeeping = self._make_housekeeping()
        self._scrubbing = self._make_scrubbing()
        self._ports.open_http(self._make_watching().pages)
        self._reactor.turn_hooks += [
            self._rounds.settle,
            self._parking.settle,
            groups.topic.flush,
            transactions.topic.flush,
            self._hosting.make_and_remove_files,
            self._rounds.start,
            self._parking.settle,
            groups.topic.wake_if_dirty,
            transactions.topic.wake_if_dirty,
        ]

    def _add_gauges(self) -> None:
        self.metrics.gauge("server.parked", lambda: len(self._parking))
        self.metrics.gauge("partitions", lambda: len(self.partitions))
        self.metrics.gauge("partitions.offline", lambda: len(self.partitions.offline))
        self.metrics.gauge("log.directories.offline", lambda: len(self._directories.failed))

    def _open_coordination(self, directory: str) -> HostedCoordination:
        if self.settings.ensemble is None:
            return LocalCoordination(self._files, directory, self.clock)
        self._ensemble = connect(self.settings.ensemble, self._reactor.post, self._session_over)
        return self._ensemble

    def _coordination_rounds(self) -> CoordinationRounds | None:
        if not isinstance(self._coordination, LocalCoordination):
            return None  # an ensemble makes its changes durable by itself
        return CoordinationRounds(
            self._coordination,
            self._threads.coordination_syncer,
            self._reactor,
            self._fail,
            self._threads.coordination_lane.lane,
        )

    def _await(self, operation: ControllerOperation) -> None:
        """Runs a controller operation to its end; only while nobody is served yet."""
        require(outcome_of(operation, self._coordination))

    def _open_directories(self) -> None:
        def open_one(path: str) -> LogDirectory:
            return LogDirectory(
                path,
                self._files,
                cluster_id=self._controller.image.cluster_id,
                node_id=self.settings.node_id,
                config_of=self._hosting.config_of,
                now_ms=self.clock.wall_ms(),
            )

        self._directories.open_all(map(str, self.settings.log_dirs), open_one)

    def _follow(self, change: Change) -> None:
        if isinstance(change, BrokerConfigChanged):
            limit_connections(self._socket_options, self._controller.config)

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
            offload_read=self._threads.reader,
            fetch_bytes_max=self.settings.config.integer("fetch.max.bytes"),
        )

    def _make_cleaning(self) -> Cleaning:
        return Cleaning(
            self._reactor,
            self.clock,
            lambda: self._controller.config,
            self.partitions,
            self._directories,
            self.metrics,
            self._fail_directory,
        )

    def _make_housekeeping(self) -> Housekeeping:
        return Housekeeping(
            self._reactor,
            self.clock,
            self._hosting,
            self.partitions,
            self._directories,
            self._rounds,
            self._threads.syncer,
            self._threads.reader,
        )

    def _make_scrubbing(self) -> Scrubbing:
        return Scrubbing(
            self._reactor,
            self.clock,
            self._files,
            self.partitions,
            self._threads.scrubber,
            self.metrics,
            self.settings.config.integer("ottla.log.scrub.bytes.per.second"),
            self.settings.config.integer("log.initial.task.delay.ms"),
        )

    def _make_watching(self) -> Watching:
        return Watching(
            self.health,
            self.metrics,
            self._controller,
            self.partitions,
            self._directories,
            self._files,
            self._services.groups,
        )

    def _fail(self, error: BaseException) -> None:
        """A sync failed: what the disk holds is not known any more, so nothing further is promised."""
        log.critical("the disk did not take what was written: %s", error)
        self._failure = self._failure or error
        self._reactor.stop()

    def _session_over(self) -> None:
        log.critical("%s", SESSION_OVER)
        self._failure = self._failure or BrokerFailed(SESSION_OVER)
        self._reactor.stop()

    def _fail_directory(self, path: str, error: OSError) -> None:
        """The others survive the loss of one; without the last there is no broker."""
        for directory in self._directories:
            if directory.path == path and len(self._directories) > 1:
                self._hosting.directory_failed(directory, error)
                return
        self._fail(error)

    # -- running and stopping ------------------------------------------------------------------------------

    def run(self, on_serving: Callable[[], None] | None = None) -> None:
        """Serves until `ask_to_stop`; then everything is answered, synced and closed. Raises BrokerFailed.

        `on_serving` is called once, from the loop that answers clients.
        """
        if on_serving is not None:
            self._reactor.post(on_serving)
        try:
            self._reactor.run()
            if self._failure is None:
                self._drain()
            if self._failure is None:
                self._close()
        finally:
            self._abandon()
        if self._failure is not None:
            raise ending_of(self._failure) from self._failure

    def ask_to_stop(self) -> None:
        """From a signal handler or another thread; once is enough."""
        if not self._stop_asked:
            self._stop_asked = True
            self._reactor.post(self._reactor.stop)

    def _drain(self) -> None:
        """No new requests; what waits for the disk gets its answer, what waits for data is answered empty."""
        log.info("broker %d was asked to stop", self.settings.node_id)
        reactor = self._reactor
        reactor.stop_listening()
        reactor.stop_reading()
        self._services.groups.stop()
        self._services.transactions.stop()
        deadline_ms = self.clock.monotonic_ms() + _DRAIN_MS_MAX
        reactor.turn(0)
        while self._rounds.is_busy and self._failure is None:  # however long it takes: it was promised
            reactor.turn(100)
        self._parking.expire_all()
        while self._failure is None and (self._rounds.is_busy or self._owes_answers_until(deadline_ms)):
            reactor.turn(100)  # files that were being made may begin one more round

    def _owes_answers_until(self, deadline_ms: int) -> bool:
        return self._reactor.answers_outstanding and self.clock.monotonic_ms() < deadline_ms

    def _close(self) -> None:
        """After a clean drain: everything durable, the marker that makes the next start instant."""
        if self._cleaning is not None:
            self._cleaning.stop()
        self._threads.stop()
        for directory in self._directories:
            self._close_one(partial(directory.close, self._hosting.high_watermarks(directory)))
        self._close_one(self._coordination.close)
        if self._failure is None:
            log.info("broker %d has stopped; everything is on the disk", self.settings.node_id)

    def _close_one(self, close: Callable[[], None]) -> None:
        """What one of them cannot complete keeps none of the others from it."""
        try:
            close()
        except (OSError, NotStoppedCleanly) as error:
            log.critical("not stopped cleanly: %s", error)
            self._failure = self._failure or error

    def _abandon(self) -> None:
        """Lets go of everything; what `_close` has not completed, the next start recovers."""
        if self._cleaning is not None:
            self._cleaning.abandon()
        if self._ensemble is not None:
            self._ensemble.close()  # before the loop that its threads call
        self._threads.abandon()
        self._ports.close()
        self._reactor.close()
        for directory in self._directories:
            directory.abandon()
        if self._lock is not None:
            self._lock.release()
