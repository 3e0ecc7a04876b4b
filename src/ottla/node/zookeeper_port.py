"""The tree of znodes as a service: its sessions, which also end when nobody can connect, and its port."""

from __future__ import annotations

import socket

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
    def __init__(self, config: ZooKeeperConfig, reactor: Reactor) -> None:
        self._config = config
        self._reactor = reactor
        self._socket: socket.socket | None = None  # bound; None: there is no port
        self.listener: Listener | None = None  # as bound, once it is open

    def bind(self) -> None:
        """Takes the address, if there is to be one. OSError when it is not to be had."""
        if self._config.listener is not None:
            self._socket = self._reactor.bind(self._config.listener)

    def open(self, coordination: LocalCoordination, metrics: Registry) -> None:
        """Sessions live from now on, and clients can connect if an address is bound."""
        config = self._config
        service = CoordinationService(
            coordination,
            self._reactor.clock,
            tick_ms=config.tick_ms,
            session_timeout_ms_min=config.session_timeout_ms_min,
            session_timeout_ms_max=config.session_timeout_ms_max,
        )
        self._keep_time(service)
        if self._socket is not None and config.listener is not None:
            application = ZooKeeperApplication(service, self._reactor, config, metrics)
            self.listener = self._reactor.listen(
                config.listener, application, sock=self._socket, options=_socket_options(config)
            )

    def _keep_time(self, service: CoordinationService) -> None:
        """Sessions expire, containers and nodes with a TTL go, whether anybody asks or not."""
        now_ms = self._reactor.clock.monotonic_ms()
        service.tick(now_ms)
        self._reactor.timers.set(now_ms + service.tick_interval_ms, lambda: self._keep_time(service))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def _socket_options(config: ZooKeeperConfig) -> SocketOptions:
    per_address_max = config.connections_per_address_max or CONNECTIONS_MAX
    return SocketOptions(
        request_bytes_max=config.request_bytes_max,
        connections_max=config.connections_max or CONNECTIONS_MAX,
        connections_per_address_max=lambda _: per_address_max,
        connections_max_setting="maxCnxns",
        connections_per_address_max_setting="maxClientCnxns",
        idle_ms_max=2 * config.session_timeout_ms_max,  # no session lives that long in silence
    )
