"""The controller takes office, comes back from the znodes after a restart, and gives way when replaced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import pytest

from controller.running import DIRECTORY, ENDPOINTS, RunningController
from faults.power_cut import SimulatedFiles
from ottla.controller.changes import BrokerRegistered, PartitionsChanged
from ottla.controller.cluster import ClusterImage, PartitionImage
from ottla.controller.configs import ConfigAlteration, ConfigEntry
from ottla.controller.controller import Controller
from ottla.controller.topics import PartitionsSpec, TopicSpec
from ottla.coordination.client import LocalCoordination
from ottla.coordination.operations import Create, SetData
from ottla.model.clock import ManualClock
from ottla.model.configs import BrokerConfig
from ottla.model.errors import CorruptData, ErrorCode, Refused

pytestmark = pytest.mark.usefixtures("where")


def restarted(running: RunningController) -> RunningController:
    running.coordination.close()
    return RunningController(running.files)


def test_a_new_cluster_has_every_node_that_kafka_expects() -> None:
    running = RunningController()
    assert sorted(running.paths()) == [
        "/admin",
        "/admin/delete_topics",
        "/brokers",
        "/brokers/ids",
        "/brokers/ids/1",
        "/brokers/seqid",
        "/brokers/topics",
        "/cluster",
        "/cluster/id",
        "/config",
        "/config/brokers",
        "/config/changes",
        "/config/clients",
        "/config/ips",
        "/config/topics",
        "/config/users",
        "/consumers",
        "/controller",
        "/controller_epoch",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
    ]
    image = running.controller.image
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", image.cluster_id)
    assert (image.controller_id, image.controller_epoch) == (1, 1)
    for path in ("/controller", "/brokers/ids/1"):
        stat = running.coordination.exists(path)
        assert stat is not None
        assert stat.ephemeral_owner != 0


def test_a_cluster_keeps_its_id_and_counts_its_controllers() -> None:
    running = RunningController()
    cluster_id = running.controller.image.cluster_id
    for epoch in (2, 3):
        running = restarted(running)
        assert running.controller.image.cluster_id == cluster_id
        assert running.controller.image.controller_epoch == epoch
        assert running.data("/controller_epoch") == b"%d" % epoch


def test_a_new_cluster_takes_the_id_it_is_given() -> None:
    coordination = LocalCoordination(SimulatedFiles(), DIRECTORY, ManualClock())
    controller = Controller(coordination, ManualClock(), BrokerConfig(), 1)
    controller.start(lambda _: None, cluster_id="MkU3OEVBNTcwNTJENDM2Qg")
    coordination.sync()
    assert controller.image.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg"


def test_registering_announces_the_broker_and_gives_it_an_epoch() -> None:
    running = RunningController()
    [broker] = running.controller.image.brokers.values()
    assert (broker.id, broker.endpoints, broker.rack) == (1, ENDPOINTS, None)
    assert broker.endpoint("PLAINTEXT") == ENDPOINTS[0]
    assert broker.endpoint("SSL") is None
    again = restarted(running)
    assert again.controller.image.brokers[1].epoch > broker.epoch
    outcomes: list[Refused | None] = []
    again.controller.register_broker(ENDPOINTS, None, outcomes.append)
    [outcome] = outcomes
    assert outcome is not None
    assert outcome.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_registration_is_announced() -> None:
    coordination = LocalCoordination(SimulatedFiles(), DIRECTORY, ManualClock())
    controller = Controller(coordination, ManualClock(), BrokerConfig(), 7)
    changes: list[object] = []
    controller.on_change.append(changes.append)
    controller.start(lambda _: None)
    coordination.sync()
    controller.register_broker(ENDPOINTS, "a", lambda _: None)
    coordination.sync()
    assert changes == [BrokerRegistered(controller.image.brokers[7])]


def change_at_random(running: RunningController, rng: Random) -> None:
    names = [f"topic-{number}" for number in range(5)]
    kind = rng.randrange(5)
    if kind == 0:
        entries = [ConfigEntry("log.retention.ms", str(rng.randrange(1_000)))]
        running.alter(ConfigAlteration(4, rng.choice(("", "1")), entries))
    elif kind == 1:
        entries = [ConfigEntry("retention.ms", str(rng.randrange(1_000)))]
        running.alter(ConfigAlteration(2, rng.choice(names), entries))
    elif kind == 2:
        running.delete(rng.choice(names))
    elif kind == 3:
        running.grow(PartitionsSpec(rng.choice(names), rng.randrange(1, 9)))
    else:
        running.create(TopicSpec(rng.choice(names), rng.randrange(1, 4), rng.randrange(1, 3)))


@pytest.mark.parametrize("seed", range(20))
def test_the_image_is_what_the_znodes_say(seed: int) -> None:
    rng = Random(seed)
    running = RunningController(racks={1: "a", 2: "b", 3: None})
    for _ in range(40):
        change_at_random(running, rng)
        if rng.random() < 0.1:
            done: list[Refused | None] = []
            running.controller.raise_leader_epochs(done.append)
            running.coordination.sync()
            assert done == [None]
    assert ClusterImage.load(running.coordination) == running.controller.image
    topics, settings = running.controller.image.topics, running.controller.image.broker_settings
    again = restarted(running)
    assert again.controller.image.topics == topics
    assert again.controller.image.broker_settings == settings
    assert again.controller.config.topic_config({}) == running.controller.config.topic_config({})


def test_leader_epochs_rise_for_every_partition_led_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.controller.controller._EPOCHS_PER_MULTI", 7)
    running = restarted(RunningController(racks={1: None, 2: None}))
    running = RunningController(running.files.cut(0), racks={1: None, 2: None})
    running.create(TopicSpec("a", 30, 2), TopicSpec("b", 1, 1))
    before = {name: list(topic.partitions) for name, topic in running.controller.image.topics.items()}
    running.changes.clear()
    done: list[Refused | None] = []
    running.controller.raise_leader_epochs(done.append)
    assert done == []
    running.coordination.sync()
    assert done == [None]
    raised = 0
    for name, topic in running.controller.image.topics.items():
        for old, new in zip(before[name], topic.partitions, strict=True):
            epochs = (old.leader_epoch + 1, old.partition_epoch + 1) if old.leader == 1 else (0, 0)
            assert new == PartitionImage(
                old.leader,
                epochs[0],
                old.replicas,
                old.isr,
                epochs[1],
                running.controller.image.controller_epoch,
            )
            raised += old.leader == 1
    announced = [change for change in running.changes if isinstance(change, PartitionsChanged)]
    assert sum(len(change.partitions) for change in announced) == raised >= 15
    assert max(len(change.partitions) for change in announced) <= 7
    assert ClusterImage.load(running.coordination) == running.controller.image


def test_raising_no_epochs_is_answered_too() -> None:
    done: list[Refused | None] = []
    RunningController().controller.raise_leader_epochs(done.append)
    assert done == [None]


def test_a_controller_that_was_replaced_changes_nothing() -> None:
    running = RunningController()
    running.coordination.submit(SetData("/controller_epoch", b"2"), lambda _: None)
    [result] = running.create(TopicSpec("t"))
    assert result.code is ErrorCode.NOT_CONTROLLER
    assert running.coordination.children("/brokers/topics") == []
    assert running.controller.image.topics == {}


def test_a_second_controller_is_refused() -> None:
    running = RunningController()
    second = Controller(running.coordination, running.clock, BrokerConfig(), 2)
    outcomes: list[Refused | None] = []
    second.start(outcomes.append)
    running.coordination.sync()
    [outcome] = outcomes
    assert outcome is not None
    assert outcome.code is ErrorCode.NOT_CONTROLLER
    assert "broker 1" in outcome.text


def test_a_change_that_never_fits_ends_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody else's node is in the way and no topic in the image explains it."""
    running = RunningController()
    running.coordination.submit(Create("/brokers/topics/t", b"{}"), lambda _: None)
    [result] = running.create(TopicSpec("t"))
    assert result.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert result.text == "/brokers/topics/t: NODE_EXISTS"
    assert "cannot be written" in caplog.text


def test_listeners_hear_of_a_change_before_its_answer() -> None:
    running = RunningController()
    seen: list[object] = []
    running.controller.on_change.append(lambda change: seen.append("change"))
    running.controller.create_topics([TopicSpec("t")], False, lambda results: seen.append("answer"))
    assert seen == []
    running.coordination.sync()
    assert seen == ["change", "answer"]


def test_topics_of_older_kafkas_are_read() -> None:
    """No topic id, no settings, and a partition that never had a leader."""
    running = RunningController()
    for path, data in [
        ("/brokers/topics/old", b'{"version":1,"partitions":{"0":[1],"1":[1]}}'),
        ("/brokers/topics/old/partitions", b""),
        ("/brokers/topics/old/partitions/0", b""),
        (
            "/brokers/topics/old/partitions/0/state",
            b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":2,"isr":[1]}',
        ),
    ]:
        running.coordination.submit(Create(path, data), lambda _: None)
    running.coordination.sync()
    running = restarted(running)
    topic = running.controller.image.topics["old"]
    assert topic.partitions == [
        PartitionImage(1, 2, (1,), (1,), 0, 3),
        PartitionImage(-1, 0, (1,), (), -1, 0),
    ]
    assert running.controller.image.topics_by_id == {}
    entries = [ConfigEntry("retention.ms", "5")]
    assert running.alter(ConfigAlteration(2, "old", entries))[0].code is ErrorCode.NONE
    assert ClusterImage.load(running.coordination) == running.controller.image
    assert running.delete("old")[0].code is ErrorCode.NONE
    assert running.coordination.children("/brokers/topics") == []


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/t", b"{}"),
        ("/brokers/topics/t", b"not json"),
        ("/brokers/topics/t", b'{"partitions":{"1":[1]}}'),
        ("/brokers/ids/x", b"{}"),
        ("/config/brokers/x", b"{}"),
    ],
)
def test_a_znode_that_makes_no_sense_is_named(path: str, data: bytes) -> None:
    running = RunningController()
    running.coordination.submit(Create(path, data), lambda _: None)
    running.coordination.sync()
    with pytest.raises(CorruptData, match="does not hold what Kafka keeps there"):
        ClusterImage.load(running.coordination)


def test_dynamic_settings_that_no_longer_exist_do_not_keep_the_broker_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    running = RunningController()
    data = b'{"version":1,"config":{"log.retention.ms":"5","gone.setting":"1"}}'
    running.coordination.submit(Create("/config/brokers/1", data), lambda _: None)
    running = restarted(running)
    assert "gone.setting" in caplog.text
    assert running.create(TopicSpec("t"))[0].code is ErrorCode.NONE


def test_an_empty_request_is_answered() -> None:
    running = RunningController()
    empty: list[Sequence[object]] = []
    running.controller.create_topics([], False, empty.append)
    running.controller.delete_topics([], empty.append)
    running.controller.create_partitions([], False, empty.append)
    running.controller.alter_configs([], True, False, empty.append)
    assert empty == [[], [], [], []]
