"""A broker of its own behind a faulty wire, for tests that break connections or kill it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from faults.faulty_wire import FaultyWire
from ottla.client.admin import Admin
from ottla.testing import BrokerProcess


class WiredBroker:
    def __init__(self, wire: FaultyWire, broker: BrokerProcess) -> None:
        self.wire = wire
        self.broker = broker
        self.reconnect()

    @property
    def bootstrap(self) -> str:
        return self.wire.bootstrap

    def reconnect(self) -> None:
        host, _, port = self.broker.bootstrap.rpartition(":")
        self.wire.backend = (host, int(port))

    def kill(self) -> None:
        self.wire.backend = None
        self.broker.kill()
        self.wire.cut_all()

    def restart(self) -> None:
        self.broker.start()
        self.reconnect()

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        with Admin(self.bootstrap) as admin:
            admin.create_topic(name, partitions=partitions, configs=named)
        return name


@contextmanager
def wired_broker(more: Mapping[str, str] = MappingProxyType({})) -> Iterator[WiredBroker]:
    wire = FaultyWire()
    settings = {
        **more,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{wire.port}",
    }
    try:
        with BrokerProcess(settings=settings) as broker:
            yield WiredBroker(wire, broker)
    finally:
        wire.close()
