"""Where a broker can be reached: the listeners for Kafka clients, the ZooKeeper port, and HTTP.

The listeners are bound before any data is opened, and served when all of it is ready. The other two are
extras: a port that is taken is a reason not to start only for who asked for it.
"""

from __future__ import annotations

import logging
import socket

from ottla.controller.znode_formats import EndPoint
from ottla.coordination.client import LocalCoordination
from ottla.model.configs import ConfigSource
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.node.failures import BrokerFailed, unable_to_listen
from ottla.node.settings import BrokerSettings
from ottla.node.zookeeper_port import PORT_TAKEN_CURE, ZooKeeperPort
from ottla.server.application import Application
from ottla.server.http.application import HttpApplication, Pages, http_socket_options
from ottla.server.reactor import Reactor

log = logging.getLogger(__name__)


class Ports:
    def __init__(self, settings: BrokerSettings, reactor: Reactor, metrics: Registry) -> None:
        self.listeners: list[Listener] = []  # for Kafka clients, as bound; filled when they are served
        self.http: Listener | None = None  # /metrics and its kin, as bound
        self.zookeeper: Listener | None = None  # for ZooKeeper clients, as bound
        self._settings = settings
        self._reactor = reactor
        self._metrics = metrics
        self._bound: list[tuple[Listener, socket.socket]] = []

    def bind(self) -> None:
        """Before any data is opened: most failed starts are a second broker on the same port."""
        for listener in self._settings.listeners:
            try:
                self._bound.append((listener, self._reactor.bind(listener)))
            except OSError as error:
                cure = "choose another address with --port or the setting listeners"
                raise unable_to_listen(listener.port, f"cannot listen on {listener}", cure, error) from error

    def serve(self, application: Application) -> list[EndPoint]:
        """Kafka clients are answered from now on; returns what they are to be told, with the real ports."""
        for listener, sock in self._bound:
            control = listener.name == self._settings.control_plane_listener
            self.listeners.append(self._reactor.listen(listener, application, control=control, sock=sock))
        ports = {listener.name: listener.port for listener in self.listeners}
        advertised = self._settings.advertised_as_bound(ports, socket.getfqdn)
        return [EndPoint(each.name, each.host, each.port, each.security_protocol) for each in advertised]

    def open_zookeeper(self, coordination: LocalCoordination) -> None:
        config = self._settings.zookeeper
        port = ZooKeeperPort(config, coordination, self._reactor, self._metrics)
        try:
            port.open()
        except OSError as error:
            assert config.listener is not None
            text = f"cannot listen on {config.listener}"
            problem = unable_to_listen(config.listener.port, text, PORT_TAKEN_CURE, error)
            self._do_without("ZooKeeper port", "clientPort", problem, error)
        self.zookeeper = port.listener

    def open_http(self, pages: Pages) -> None:
        """For those who watch."""
        config, name = self._settings.config, "ottla.http.port"
        host, port = config.text("ottla.http.host"), config.integer(name)
        if port < 0:
            return
        application = HttpApplication(pages, self._reactor.clock, self._reactor.post)
        listener = Listener("HTTP", host, port, "PLAINTEXT")
        try:
            self.http = self._reactor.listen(listener, application, options=http_socket_options())
        except OSError as error:
            text = f"cannot listen on {host}:{port} for /metrics"
            cure = f"set {name} to another port, or to -1 to go without"
            self._do_without("HTTP port", name, unable_to_listen(port, text, cure, error), error)

    def _do_without(self, what: str, setting: str, problem: BrokerFailed, error: OSError) -> None:
        """Who did not ask for a port does not have to do without a broker because it is taken."""
        if setting in self._settings.config.set_names(ConfigSource.STATIC_BROKER_CONFIG):
            raise problem from error
        log.warning("no %s: %s", what, problem)

    def close(self) -> None:
        """Those that were bound; the reactor closes what it serves."""
        for _, sock in self._bound:
            sock.close()
