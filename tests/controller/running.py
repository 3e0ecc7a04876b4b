"""A controller for the tests of this room: on a simulated disk, or on an Apache ZooKeeper ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from faults.power_cut import SimulatedFiles
from ottla.controller.changes import Change
from ottla.controller.cluster import BrokerImage
from ottla.controller.configs import ConfigAlteration, ConfigResult
from ottla.controller.controller import Controller
from ottla.controller.topics import PartitionsSpec, TopicResult, TopicSpec
from ottla.controller.znode_formats import EndPoint, broker_path, encode_broker
from ottla.coordination.client import LocalCoordination
from ottla.coordination.ensemble import KazooCoordination
from ottla.coordination.operations import Create
from ottla.model.clock import ManualClock
from ottla.model.configs import BrokerConfig
from ottla.model.errors import Refused
from ottla.model.topics import TopicId

DIRECTORY = "/coordination"
ENDPOINTS = (EndPoint("PLAINTEXT", "localhost", 9092),)


class Chroot:
    """Where nodes are in an ensemble. Takes the place of a disk: opened again, they are still there."""

    def __init__(self, addresses: str, path: str) -> None:
        self.hosts = addresses + path
        self.opened: list[KazooCoordination] = []

    def open(self) -> KazooCoordination:
        self.close()
        coordination = KazooCoordination(
            self.hosts,
            lambda call: None,  # the tests wait for everything themselves
            lambda: None,
            session_timeout_ms=10_000,
            connection_timeout_ms=60_000,
        )
        coordination.start()
        self.opened.append(coordination)
        return coordination

    def close(self) -> None:
        while self.opened:
            self.opened.pop().close()

    @property
    def operations(self) -> int:
        """How many changes were sent."""
        return sum(coordination._number for coordination in self.opened)

    def cut(self, seed: int) -> Chroot:
        """A process that dies is all that an ensemble sees of a power cut."""
        return self


class Where:
    """Set by the fixture of that name: where the controllers of a test keep their nodes."""

    chroot: Chroot | None = None


class RunningController:
    """Broker 1 is the controller; every call waits for the disk and gives the results."""

    def __init__(
        self,
        files: SimulatedFiles | Chroot | None = None,
        config: BrokerConfig | None = None,
        racks: dict[int, str | None] | None = None,
        snapshot_log_bytes: int = 1 << 20,
    ) -> None:
        self.files: Any = files or Where.chroot or SimulatedFiles()
        self.clock = ManualClock()
        self.coordination: LocalCoordination | KazooCoordination
        if isinstance(self.files, Chroot):
            self.coordination = self.files.open()
        else:
            self.coordination = LocalCoordination(
                self.files, DIRECTORY, self.clock, snapshot_log_bytes=snapshot_log_bytes
            )
        self.controller = Controller(
            self.coordination, self.clock, config or BrokerConfig(), 1, random=Random(0)
        )
        self.changes: list[Change] = []
        self.controller.on_change.append(self.changes.append)
        self.start(racks or {1: None})

    def start(self, racks: dict[int, str | None]) -> None:
        outcomes: list[Refused | None] = []
        self.controller.start(outcomes.append)
        self.coordination.sync()
        self.controller.register_broker(ENDPOINTS, racks[1], outcomes.append)
        self.coordination.sync()
        assert outcomes == [None, None]
        for broker, rack in racks.items():
            if broker != 1:
                self._add_broker(broker, rack)
        self.changes.clear()

    def _add_broker(self, broker: int, rack: str | None) -> None:
        """Another broker appears, as if it had registered itself."""
        data = encode_broker(ENDPOINTS, rack, self.clock.wall_ms())
        self.coordination.submit(Create(broker_path(broker), data, ephemeral=True), lambda _: None)
        self.coordination.sync()
        stat = self.coordination.exists(broker_path(broker))
        assert stat is not None
        self.controller.image.brokers[broker] = BrokerImage(broker, ENDPOINTS, rack, stat.czxid)

    def create(self, *specs: TopicSpec, validate_only: bool = False) -> Sequence[TopicResult]:
        results: list[Sequence[TopicResult]] = []
        self.controller.create_topics(specs, validate_only, results.append)
        self.coordination.sync()
        [result] = results
        return result

    def grow(self, *specs: PartitionsSpec, validate_only: bool = False) -> Sequence[TopicResult]:
        results: list[Sequence[TopicResult]] = []
        self.controller.create_partitions(specs, validate_only, results.append)
        self.coordination.sync()
        [result] = results
        return result

    def delete(self, *targets: str | TopicId) -> Sequence[TopicResult]:
        results: list[Sequence[TopicResult]] = []
        self.controller.delete_topics(targets, results.append)
        self.coordination.sync()
        [result] = results
        return result

    def alter(
        self, *alterations: ConfigAlteration, incremental: bool = True, validate_only: bool = False
    ) -> Sequence[ConfigResult]:
        results: list[Sequence[ConfigResult]] = []
        self.controller.alter_configs(alterations, incremental, validate_only, results.append)
        self.coordination.sync()
        [result] = results
        return result

    def paths(self, below: str = "/") -> set[str]:
        """Every node but those that ZooKeeper and our client of it keep for themselves."""
        coordination = self.coordination
        coordination.refresh([below], lambda: None, below=True)
        coordination.sync()
        found = set()
        for name in coordination.children(below) or ():
            path = f"{below.rstrip('/')}/{name}"
            if path not in ("/zookeeper", "/ottla"):
                found |= {path} | self.paths(path)
        return found

    def data(self, path: str) -> bytes | None:
        found = self.coordination.read(path)
        assert found is not None, path
        return found[0]
