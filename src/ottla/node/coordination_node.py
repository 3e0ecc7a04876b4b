"""One process with the tree of znodes and its ZooKeeper port, and nothing else: coordination alone."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from ottla.coordination.client import LocalCoordination
from ottla.log.files import Files, Lock
from ottla.log.system_files import SystemFiles
from ottla.model.clock import Clock, SystemClock
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.model.zookeeper_config import ZooKeeperConfig
from ottla.node.coordination_rounds import CoordinationRounds
from ottla.node.lane_thread import LaneThread
from ottla.node.workers import Workers
from ottla.node.zookeeper_port import PORT_TAKEN_CURE, ZooKeeperPort
from ottla.server.accepting import SocketOptions
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)

LOCK = ".lock"
_DRAIN_MS_MAX = 10_000  # how long a stop waits for answers that a slow peer does not take


class CoordinationFailed(RuntimeError):
    """The service cannot go on; what it acknowledged is safe. The message says what a person must do."""


class CoordinationNode:
    def __init__(
        self, config: ZooKeeperConfig, *, clock: Clock | None = None, files: Files | None = None
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.metrics = Registry()
        self.listener: Listener | None = None  # as bound, once it has started
        self._files = files or SystemFiles()
        self._reactor = Reactor(self.clock, SocketOptions(), self.metrics)
        self._syncer = Workers("coordination", 1, self._reactor.post)
        self._lane = LaneThread("lane", self._reactor.ring_fd)
        self._lock: Lock | None = None
        self._failure: BaseException | None = None
        self._stop_asked = False

    def start(self) -> None:
        """Returns when clients can connect. Raises OSError, CorruptData or CoordinationFailed."""
        try:
            self._start()
        except BaseException:
            self._abandon()
            raise

    def _start(self) -> None:
        directory = os.path.abspath(self.config.data_dir)
        self._files.make_directories(directory)
        self._lock = self._files.lock(os.path.join(directory, LOCK))
        self._coordination = LocalCoordination(self._files, directory, self.clock)
        self._coordination.sync()
        self._rounds = CoordinationRounds(
            self._coordination, self._syncer, self._reactor, self._fail, self._lane.lane
        )
        self._reactor.turn_hooks.append(self._rounds.start)
        port = ZooKeeperPort(self.config, self._coordination, self._reactor, self.metrics)
        try:
            port.open()
        except OSError as error:
            raise CoordinationFailed(
                f"cannot listen on {self.config.listener}: {error.strerror}; {PORT_TAKEN_CURE}"
            ) from error
        self.listener = port.listener

    def _fail(self, error: BaseException) -> None:
        """A sync failed: what the disk holds is not known any more, so nothing further is promised."""
        log.critical("the disk did not take what was written: %s", error)
        self._failure = self._failure or error
        self._reactor.stop()

    def run(self, on_serving: Callable[[], None] | None = None) -> None:
        """Serves until `ask_to_stop`; then everything is answered and synced. Raises CoordinationFailed."""
        if on_serving is not None:
            self._reactor.post(on_serving)
        try:
            self._reactor.run()
            if self._failure is None:
                self._drain()
            if self._failure is None:
                self._syncer.stop()
                self._lane.stop()
                self._coordination.close()
        except OSError as error:
            self._fail(error)
        finally:
            self._abandon()
        if self._failure is not None:
            raise CoordinationFailed(
                f"the disk did not take what was written ({self._failure}); check it, then start again: "
                "everything that was acknowledged is there"
            ) from self._failure

    def ask_to_stop(self) -> None:
        """From a signal handler or another thread; once is enough."""
        if not self._stop_asked:
            self._stop_asked = True
            self._reactor.post(self._reactor.stop)

    def _drain(self) -> None:
        """No new requests; what waits for the disk gets its answer. Sessions go on with the next start."""
        reactor = self._reactor
        reactor.stop_listening()
        reactor.stop_reading()
        deadline_ms = self.clock.monotonic_ms() + _DRAIN_MS_MAX
        reactor.turn(0)
        while self._rounds.is_busy and self._failure is None:
            reactor.turn(100)
        while reactor.answers_outstanding and self.clock.monotonic_ms() < deadline_ms:
            reactor.turn(100)

    def _abandon(self) -> None:
        self._syncer.abandon()
        self._lane.abandon()
        self._reactor.close()
        if self._lock is not None:
            self._lock.release()
