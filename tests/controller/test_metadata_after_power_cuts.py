"""The plug is pulled while topics and settings change: none that was acknowledged is lost, none is invented.

The test keeps its own account: what each topic is for certain (from the answers), and what the requests still
under way may have made of it. After each cut every topic must be one of these, and whole: every partition
with its state, its settings, and no node that belongs to no topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import pytest

from controller.running import DIRECTORY, ENDPOINTS
from faults.power_cut import PowerCut, SimulatedFiles
from ottla.controller.cluster import ClusterImage
from ottla.controller.configs import ConfigAlteration, ConfigEntry, ConfigResult
from ottla.controller.controller import Controller
from ottla.controller.topics import PartitionsSpec, TopicResult, TopicSpec
from ottla.coordination import snapshots
from ottla.coordination.client import LocalCoordination
from ottla.model.clock import ManualClock
from ottla.model.configs import BrokerConfig
from ottla.model.errors import ErrorCode

TOPICS = ("a", "b.c", "d", "e-1", "f")


class Topic(NamedTuple):
    partitions: int
    retention_ms: str | None


class Account:
    """What the requests and their answers say about each topic."""

    def __init__(self) -> None:
        self.certain: dict[str, Topic | None] = dict.fromkeys(TOPICS)
        self.possible: dict[str, list[Topic | None]] = {name: [] for name in TOPICS}  # under way, in order

    def begin(self, name: str, topic: Topic | None) -> None:
        self.possible[name].append(topic)

    def acknowledge(self, name: str) -> None:
        self.certain[name] = self.possible[name].pop(0)

    def check(self, image: ClusterImage) -> None:
        """And take what was found as certain: it has been read, so it may not change any more."""
        for name in TOPICS:
            found = image.topics.get(name)
            shown = None if found is None else Topic(len(found.partitions), found.configs.get("retention.ms"))
            assert shown in (self.certain[name], *self.possible[name]), name
            self.certain[name], self.possible[name] = shown, []
        assert set(image.topics) <= set(TOPICS)


class Life:
    """One run of a broker's controller, until the plug is pulled."""

    def __init__(self, rng: Random, files: SimulatedFiles, account: Account, producer_ids: list[int]) -> None:
        self.rng = rng
        self.files = files
        self.account = account
        self.producer_ids = producer_ids  # first ids of every block that was handed out
        files.stop_at = files.operations + rng.choice((rng.randrange(1, 15), rng.randrange(1, 120)))

    def run(self) -> None:
        try:
            coordination = LocalCoordination(self.files, DIRECTORY, ManualClock(), snapshot_log_bytes=2_000)
            check_that_topics_are_whole(coordination)
            self.account.check(ClusterImage.load(coordination))
            controller = Controller(coordination, ManualClock(), BrokerConfig(), 1, self.rng)
            controller.start(lambda _: None)
            coordination.sync()
            controller.register_broker(ENDPOINTS, None, lambda _: None)
            coordination.sync()
            while True:
                self.turn(controller, coordination)
        except PowerCut:
            pass

    def turn(self, controller: Controller, coordination: LocalCoordination) -> None:
        self.requests(controller)
        ticket = coordination.begin_sync()
        self.requests(controller)
        if ticket is not None:
            ticket.run()
            self.requests(controller)
            coordination.finish_sync(ticket)

    def requests(self, controller: Controller) -> None:
        for name in self.rng.sample(TOPICS, self.rng.randrange(3)):
            if not self.account.possible[name]:  # else the answer depends on how the one under way ends
                self.request(controller, name)
        if self.rng.random() < 0.1:
            controller.next_producer_id_block(
                lambda block: self.producer_ids.append(block.first_id)  # type: ignore[union-attr]
            )

    def request(self, controller: Controller, name: str) -> None:
        def answered(results: Sequence[TopicResult | ConfigResult]) -> None:
            assert [result.code for result in results] == [ErrorCode.NONE]
            self.account.acknowledge(name)

        present = self.account.certain[name]
        retention_ms = str(self.rng.randrange(1_000))
        if present is None:
            partitions = self.rng.randrange(1, 6)
            self.account.begin(name, Topic(partitions, retention_ms))
            spec = TopicSpec(name, partitions, 1, configs=[("retention.ms", retention_ms)])
            controller.create_topics([spec], False, answered)
        elif self.rng.random() < 0.3:
            self.account.begin(name, None)
            controller.delete_topics([name], answered)
        elif self.rng.random() < 0.5:
            self.account.begin(name, present._replace(retention_ms=retention_ms))
            entries = [ConfigEntry("retention.ms", retention_ms)]
            controller.alter_configs([ConfigAlteration(2, name, entries)], True, False, answered)
        else:
            self.account.begin(name, present._replace(partitions=present.partitions + 2))
            controller.create_partitions([PartitionsSpec(name, present.partitions + 2)], False, answered)


def check_that_topics_are_whole(coordination: LocalCoordination) -> None:
    expected = set()
    for name, topic in ClusterImage.load(coordination).topics.items():
        expected |= {
            f"/brokers/topics/{name}",
            f"/brokers/topics/{name}/partitions",
            f"/config/topics/{name}",
        }
        for index in range(len(topic.partitions)):
            expected |= {f"/brokers/topics/{name}/partitions/{index}{node}" for node in ("", "/state")}
    prefixes = ("/brokers/topics/", "/config/topics/")
    assert {path for path in coordination.tree.nodes if path.startswith(prefixes)} == expected


def live_through_cuts(seed: int, cuts: int) -> None:
    rng = Random(seed)
    files, account = SimulatedFiles(), Account()
    producer_ids: list[int] = []
    for _ in range(cuts):
        Life(rng, files, account, producer_ids).run()
        if rng.random() < 0.8:  # else the process was killed, and the page cache is still there
            files = files.cut(rng.randrange(1 << 30))
    files.stop_at = None
    coordination = LocalCoordination(files, DIRECTORY, ManualClock())
    check_that_topics_are_whole(coordination)
    account.check(ClusterImage.load(coordination))
    assert len(set(producer_ids)) == len(producer_ids)


@pytest.mark.parametrize("block", range(10))
def test_no_topic_or_setting_is_lost_or_invented(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SLICE_NODES", 10)
    for seed in range(block * 30, block * 30 + 30):
        live_through_cuts(seed, 4)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_no_topic_or_setting_of_many_is_lost_or_invented(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SLICE_NODES", 10)
    for seed in range(10_000 + block * 300, 10_000 + block * 300 + 300):
        live_through_cuts(seed, 6)
