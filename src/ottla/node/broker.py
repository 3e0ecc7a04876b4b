"""One broker process: opens the data, wires the rooms together, serves, and stops without losing anything.

The only place that owns threads: the caller's runs the reactor and owns all state; one syncs, two read cold
data. Everything they bring back runs on the owner's thread.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from functools import partial

from ottla.controller.changes import BrokerConfigChanged, Change
from ottla.controller.controller import Controller
from ottla.controller.producer_ids import ProducerIds
from ottla.controller.znode_formats import EndPoint
from ottla.coordination.client import HostedCoordination, LocalCoordination
from ottla.coordination.ensemble import KazooCoordination
from ottla.log.directories import LogDirectories
from ottla.log.directory import LogDirectory, NotStoppedCleanly
from ottla.log.files import Files, Lock, SystemFiles
from ottla.model.clock import Clock, SystemClock
from ottla.model.configs import ConfigSource
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
from ottla.node.scrubbing import Scrubbing
from ottla.node.settings import BrokerSettings, connection_limits
from ottla.node.socket_options import socket_options
from ottla.node.sync_rounds import SyncRounds
from ottla.node.watching import Watching
from ottla.node.workers import Workers
from ottla.node.zookeeper_port import PORT_TAKEN_CURE, ZooKeeperPort
from ottla.replica.partitions import Partitions
from ottla.security.authorizer import AllowAll, Authorizer
from ottla.security.quotas import Unlimited
from ottla.server.fetch_sessions import FetchSessions
from ottla.server.http.application import HttpApplication, http_socket_options
from ottla.server.kafka import KafkaApplication
from ottla.server.parking import Parking
from ottla.server.reactor import Reactor
from ottla.server.services import Services

log = logging.getLogger(__name__)

_COLD_READERS = 2
_DRAIN_MS_MAX = 10_000  # how long a stop waits for answers that a slow peer does not take


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
        self.health = Health()
        self.listeners: list[Listener] = []  # as bound
        self.http: Listener | None = None  # /metrics and its kin, as bound
        self.zookeeper: Listener | None = None  # for ZooKeeper clients, as bound
        self._files = files or SystemFiles()
        self._failure: BaseException | None = None
        self._stop_asked = False
        self._bound: list[tuple[Listener, socket.socket]] = []
        self._lock: Lock | None = None  # of the coordination directory
        self._ensemble: KazooCoordination | None = None  # when the tree is not ours
        self._directories = LogDirectories()
        self._cleaning: Cleaning | None = None
        self._socket_options = socket_options(settings)
        self._reactor = Reactor(self.clock, self._socket_options, self.metrics)
        self._syncer = Workers("sync", 1, self._reactor.post)
        self._coordination_syncer = Workers("coordination", 1, self._reactor.post)
        self._reader = Workers("read", _COLD_READERS, self._reactor.post)
        self._scrubber = Workers("scrub", 1, self._reactor.post)
        self._reactor.offload = self._reader
        self._parking = Parking(self._reactor.timers)
        self._authorizer = authorizer or AllowAll()

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
        self._lock = self._files.lock(os.path.join(coordination_dir, LOCK))
        self._coordination = self._open_coordination(coordination_dir)
        self._controller = Controller(
            self._coordination, self.clock, self.settings.config, self.settings.node_id
        )
        require(take_office(self.settings.ensemble, self._controller.start, self._coordination))
        self._rounds = SyncRounds(
            self._coordination_rounds(),
            self.partitions,
            self._syncer,
            self.clock,
            self.metrics,
            self._fail,
            self._fail_directory,
        )
        self._hosting = Hosting(
            self._controller, self.partitions, self._directories, self._rounds, self._parking, self.clock
        )
        self._reactor.file_failed = self._hosting.file_failed
        self._open_directories()
        if not all(directory.was_clean for directory in self._directories):
            self._await(self._controller.raise_leader_epochs)
        self._hosting.host_all()
        self._cleaning = self._make_cleaning()
        self.health.add("cleaner", self._cleaning.problem)
        self._controller.on_change += [self._hosting.follow, self._cleaning.follow, self._follow]
        self._limit_connections()
        self._services = self._make_services()
        groups, transactions = self._services.groups, self._services.transactions
        self._controller.on_change += [groups.follow, transactions.follow]
        groups.start()
        transactions.start()
        self._open_listeners()
        self._open_zookeeper()
        self._housekeeping = self._make_housekeeping()
        self._scrubbing = self._make_scrubbing()
        self._open_http()
        self._reactor.turn_hooks += [
            self._parking.settle,
            groups.topic.flush,
            transactions.topic.flush,
            self._hosting.delete_doomed,
            self._rounds.start,
            self._parking.settle,
            groups.topic.wake_if_dirty,
            transactions.topic.wake_if_dirty,
        ]
        self.metrics.gauge("server.parked", lambda: len(self._parking))
        self.metrics.gauge("partitions", lambda: len(self.partitions))
        self.metrics.gauge("partitions.offline", lambda: len(self.partitions.offline))
        self.metrics.gauge("log.directories.offline", lambda: len(self._directories.failed))
        log.info(
            "broker %d serves %d partitions on %s",
            self.settings.node_id,
            len(self.partitions),
            ", ".join(map(str, self.listeners)),
        )

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

    def _open_coordination(self, directory: str) -> HostedCoordination:
        if self.settings.ensemble is None:
            return LocalCoordination(self._files, directory, self.clock)
        self._ensemble = connect(self.settings.ensemble, self._reactor.post, self._session_over)
        return self._ensemble

    def _coordination_rounds(self) -> CoordinationRounds | None:
        if not isinstance(self._coordination, LocalCoordination):
            return None  # an ensemble makes its changes durable by itself
        return CoordinationRounds(self._coordination, self._coordination_syncer, self._reactor, self._fail)

    def _open_zookeeper(self) -> None:
        """Who did not ask for the port does not have to do without a broker because it is taken."""
        if not isinstance(self._coordination, LocalCoordination):
            return  # clients of ZooKeeper have the ensemble
        port = ZooKeeperPort(self.settings.zookeeper, self._coordination, self._reactor, self.metrics)
        try:
            port.open()
        except OSError as error:
            text = f"cannot listen on {self.settings.zookeeper.listener}: {error.strerror}; {PORT_TAKEN_CURE}"
            if "clientPort" in self.settings.config.set_names(ConfigSource.STATIC_BROKER_CONFIG):
                raise BrokerFailed(text) from error
            log.warning("no ZooKeeper port: %s", text)
        self.zookeeper = port.listener

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
            self._limit_connections()

    def _limit_connections(self) -> None:
        """max.connections and its kin may change while the broker runs."""
        limits = connection_limits(self._controller.config)
        self._socket_options.connections_max = limits.connections_max
        self._socket_options.connections_per_address_max = limits.for_address
        self._socket_options.connections_per_second_max = limits.per_second_max

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
            self._syncer,
            self._reader,
        )

    def _make_scrubbing(self) -> Scrubbing:
        return Scrubbing(
            self._reactor,
            self.clock,
            self._files,
            self.partitions,
            self._scrubber,
            self.metrics,
            self.settings.config.integer("ottla.log.scrub.bytes.per.second"),
            self.settings.config.integer("log.initial.task.delay.ms"),
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

    def _open_http(self) -> None:
        """For those who watch. Never a reason not to serve, unless it was asked for."""
        config, name = self.settings.config, "ottla.http.port"
        host, port = config.text("ottla.http.host"), config.integer(name)
        watching = Watching(
            self.health,
            self.metrics,
            self._controller,
            self.partitions,
            self._directories,
            self._files,
            self._services.groups,
        )
        if port < 0:
            return
        application = HttpApplication(watching.pages, self.clock, self._reactor.post)
        try:
            self.http = self._reactor.listen(
                Listener("HTTP", host, port, "PLAINTEXT"), application, options=http_socket_options()
            )
        except OSError as error:
            problem = f"cannot listen on {host}:{port} for /metrics: {error.strerror}; set {name}"
            if name in config.set_names(ConfigSource.STATIC_BROKER_CONFIG):
                raise BrokerFailed(problem) from error
            log.warning("%s", problem)

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
        deadline_ms = self.clock.monotonic_ms() + _DRAIN_MS_MAX
        reactor.turn(0)
        while self._rounds.is_busy and self._failure is None:  # however long it takes: it was promised
            reactor.turn(100)
        self._parking.expire_all()
        while reactor.answers_outstanding and self.clock.monotonic_ms() < deadline_ms:
            reactor.turn(100)

    def _close(self) -> None:
        """After a clean drain: everything durable, the marker that makes the next start instant."""
        if self._cleaning is not None:
            self._cleaning.stop()
        for workers in (self._syncer, self._coordination_syncer, self._reader, self._scrubber):
            workers.stop()
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
        for workers in (self._syncer, self._coordination_syncer, self._reader, self._scrubber):
            workers.abandon()
        for _, sock in self._bound:
            sock.close()
        self._reactor.close()
        for directory in self._directories:
            directory.abandon()
        if self._lock is not None:
            self._lock.release()
