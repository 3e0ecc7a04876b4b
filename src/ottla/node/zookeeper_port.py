"""The tree of znodes as a service: its sessions, which also end when nobody can connect, and its port."""

from __future__ import annotations

from ottla.coordination.client import LocalCoordination
from ottla.coordination.service import CoordinationService
from ottla.model.limits import CONNECTIONS_MAX
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.model.zookeeper_config import ZooKeeperConfig
from ottla.server.accepting import SocketOptions
from ottla.server.reactor import Reactor
from ottla.server.zookeeper.application import ZooKeeperApplication

PORT_TAKEN_CURE = "set clientPort to another port, or to -1 to go without"


class ZooKeeperPort:
    def __init__(
        self, config: ZooKeeperConfig, coordination: LocalCoordination, reactor: Reactor, metrics: Registry
    ) -> None:
        """Sessions live from now on; nobody can connect yet."""
        self.listener: Listener | None = None  # as bound, when it is open
        self._config = config
        self._reactor = reactor
        self._metrics = metrics
        self._service = CoordinationService(
            coordination,
            reactor.clock,
            tick_ms=config.tick_ms,
            session_timeout_ms_min=config.session_timeout_ms_min,
            session_timeout_ms_max=config.session_timeout_ms_max,
        )
        self._keep_time()

    def open(self) -> None:
        """Clients can connect, if there is to be a port. OSError when its address is not to be had."""
        if self._config.listener is None:
            return
        application = ZooKeeperApplication(self._service, self._reactor, self._config, self._metrics)
        self.listener = self._reactor.listen(
            self._config.listener, application, options=_socket_options(self._config)
        )

    def _keep_time(self) -> None:
        """Sessions expire, containers and nodes with a TTL go, whether anybody asks or not."""
        now_ms = self._reactor.clock.monotonic_ms()
        self._service.tick(now_ms)
        self._reactor.timers.set(now_ms + self._service.tick_interval_ms, self._keep_time)


def _socket_options(config: ZooKeeperConfig) -> SocketOptions:
    connections_max = config.connections_max or CONNECTIONS_MAX
    per_address_max = config.connections_per_address_max or connections_max
    return SocketOptions(
        request_bytes_max=config.request_bytes_max,
        connections_max=connections_max,
        connections_per_address_max=lambda _: per_address_max,
        connections_max_setting="maxCnxns",
        connections_per_address_max_setting="maxClientCnxns",
        idle_ms_max=2 * config.session_timeout_ms_max,  # no session lives that long in silence
    )
