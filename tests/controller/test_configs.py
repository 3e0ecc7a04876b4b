"""Settings of topics, brokers and the cluster change as Kafka changes them, whole or one by one."""

from __future__ import annotations

import pytest

from controller.running import Chroot, RunningController
from ottla.controller.changes import BrokerConfigChanged, TopicConfigChanged
from ottla.controller.cluster import ClusterImage
from ottla.controller.configs import ConfigAlteration, ConfigEntry, ConfigOperation, ResourceType
from ottla.controller.topics import TopicSpec
from ottla.model.errors import ErrorCode

pytestmark = pytest.mark.usefixtures("where")

SET, DELETE = ConfigOperation.SET, ConfigOperation.DELETE
APPEND, SUBTRACT = ConfigOperation.APPEND, ConfigOperation.SUBTRACT


def topic(name: str, *entries: tuple[str, str | None, int]) -> ConfigAlteration:
    return ConfigAlteration(ResourceType.TOPIC, name, [ConfigEntry(*entry) for entry in entries])


def broker(name: str, *entries: tuple[str, str | None, int]) -> ConfigAlteration:
    return ConfigAlteration(ResourceType.BROKER, name, [ConfigEntry(*entry) for entry in entries])


@pytest.fixture
def running() -> RunningController:
    running = RunningController()
    running.create(TopicSpec("t", configs=[("retention.ms", "1000"), ("segment.bytes", "2000000")]))
    running.changes.clear()
    return running


def configs(running: RunningController) -> dict[str, str]:
    return running.controller.image.topics["t"].configs


def test_incremental_changes_leave_the_rest(running: RunningController) -> None:
    [result] = running.alter(topic("t", ("retention.ms", "5", SET), ("flush.ms", "7", SET)))
    assert result.code is ErrorCode.NONE
    assert configs(running) == {"retention.ms": "5", "segment.bytes": "2000000", "flush.ms": "7"}
    running.alter(topic("t", ("retention.ms", None, DELETE), ("delete.retention.ms", None, DELETE)))
    assert configs(running) == {"segment.bytes": "2000000", "flush.ms": "7"}
    assert (
        running.data("/config/topics/t")
        == b'{"version":1,"config":{"segment.bytes":"2000000","flush.ms":"7"}}'
    )
    assert running.changes == [TopicConfigChanged(running.controller.image.topics["t"])] * 2
    assert ClusterImage.load(running.coordination) == running.controller.image


def test_a_whole_change_replaces_everything(running: RunningController) -> None:
    [result] = running.alter(topic("t", ("flush.ms", "7", SET)), incremental=False)
    assert result.code is ErrorCode.NONE
    assert configs(running) == {"flush.ms": "7"}


def test_lists_are_appended_to_and_subtracted_from(running: RunningController) -> None:
    def policy() -> str:
        return configs(running)["cleanup.policy"]

    running.alter(topic("t", ("cleanup.policy", "compact", APPEND)))
    assert policy() == "delete,compact"  # the default counts as present
    running.alter(topic("t", ("cleanup.policy", "compact,delete", APPEND)))
    assert policy() == "delete,compact"
    running.alter(topic("t", ("cleanup.policy", "delete", SUBTRACT)))
    assert policy() == "compact"


@pytest.mark.parametrize(
    ("alteration", "code", "text"),
    [
        (topic("t", ("retetion.ms", "5", SET)), ErrorCode.INVALID_CONFIG, "did you mean retention.ms"),
        (topic("t", ("retention.ms", "soon", SET)), ErrorCode.INVALID_CONFIG, "retention.ms=soon"),
        (topic("t", ("retention.ms", "5", APPEND)), ErrorCode.INVALID_CONFIG, "is no list"),
        (topic("t", ("retention.ms", "5", SUBTRACT)), ErrorCode.INVALID_CONFIG, "is no list"),
        (topic("t", ("no.such", "5", APPEND)), ErrorCode.INVALID_CONFIG, "does not exist"),
        (topic("t", ("retention.ms", None, SET)), ErrorCode.INVALID_REQUEST, "no value is given"),
        (topic("t", ("retention.ms", "5", 9)), ErrorCode.INVALID_REQUEST, "unknown operation 9"),
        (
            topic("t", ("retention.ms", "5", SET), ("retention.ms", None, DELETE)),
            ErrorCode.INVALID_REQUEST,
            "more than once",
        ),
        (topic("x", ("retention.ms", "5", SET)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic 'x'"),
        (topic("", ("retention.ms", "5", SET)), ErrorCode.INVALID_REQUEST, "must be named"),
        (topic("a/b", ("retention.ms", "5", SET)), ErrorCode.INVALID_TOPIC_EXCEPTION, "may only use"),
        (broker("one", ("log.retention.ms", "5", SET)), ErrorCode.INVALID_REQUEST, "named by its id"),
        (broker("9", ("log.retention.ms", "5", SET)), ErrorCode.INVALID_REQUEST, "no broker has the id 9"),
        (broker("1", ("log.retntion.ms", "5", SET)), ErrorCode.INVALID_REQUEST, "mean log.retention.ms"),
        (broker("1", ("log.retention.ms", "soon", SET)), ErrorCode.INVALID_REQUEST, "log.retention.ms=soon"),
        (broker("1", ("log.dirs", "/x", SET)), ErrorCode.INVALID_REQUEST, "cannot be changed while"),
        (broker("", ("log.dirs", "/x", SET)), ErrorCode.INVALID_REQUEST, "cannot be changed while"),
        (ConfigAlteration(8, "1", []), ErrorCode.INVALID_REQUEST, "resource type 8"),
    ],
    ids=str,
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_is_not_allowed_is_refused_as_a_whole(
    running: RunningController, alteration: ConfigAlteration, code: ErrorCode, text: str, validate_only: bool
) -> None:
    before = running.files.operations
    [result] = running.alter(alteration, validate_only=validate_only)
    assert (result.type, result.name, result.code) == (alteration.type, alteration.name, code)
    assert text in (result.text or "")
    assert running.files.operations == before
    assert running.changes == []


def test_validating_changes_nothing(running: RunningController) -> None:
    [result] = running.alter(topic("t", ("retention.ms", "5", SET)), validate_only=True)
    assert result.code is ErrorCode.NONE
    assert configs(running)["retention.ms"] == "1000"


def test_one_resource_fails_alone_and_one_named_twice_fails(running: RunningController) -> None:
    results = running.alter(
        topic("t", ("retention.ms", "5", SET)),
        topic("x", ("retention.ms", "5", SET)),
        broker("1", ("log.retention.ms", "6", SET)),
        broker("1", ("log.retention.ms", "7", SET)),
    )
    assert [result.code for result in results] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]


def test_settings_of_a_broker_are_stronger_than_those_of_the_cluster(running: RunningController) -> None:
    controller = running.controller
    running.alter(broker("", ("log.retention.ms", "5", SET), ("log.segment.bytes", "3000000", SET)))
    assert running.data("/config/brokers/<default>") == (
        b'{"version":1,"config":{"log.retention.ms":"5","log.segment.bytes":"3000000"}}'
    )
    assert controller.config.topic_config({}).retention_ms == 5
    running.alter(broker("1", ("log.retention.ms", "6", SET)))
    assert controller.config.topic_config({}).retention_ms == 6
    assert controller.config.topic_config({}).segment_bytes == 3_000_000
    running.alter(broker("1", ("log.retention.ms", None, DELETE)))
    running.alter(broker(""), incremental=False)
    assert controller.config.topic_config({}).retention_ms == 604_800_000
    assert running.changes == [BrokerConfigChanged(broker_id) for broker_id in (None, 1, 1, None)]
    assert ClusterImage.load(running.coordination) == controller.image


def test_changes_before_the_disk_answers_all_hold(running: RunningController) -> None:
    codes: list[ErrorCode] = []
    for entry in [("retention.ms", "1"), ("flush.ms", "2"), ("segment.ms", "3")]:
        running.controller.alter_configs(
            [topic("t", (*entry, SET))], True, False, lambda results: codes.append(results[0].code)
        )
    running.coordination.sync()
    assert codes == [ErrorCode.NONE] * 3
    assert configs(running) == {
        "retention.ms": "1",
        "segment.bytes": "2000000",
        "flush.ms": "2",
        "segment.ms": "3",
    }


def test_other_brokers_are_told_and_old_notices_go(running: RunningController) -> None:
    def notices() -> list[str]:
        return running.coordination.children("/config/changes") or []

    running.alter(topic("t", ("flush.ms", "7", SET)), broker("1", ("log.retention.ms", "6", SET)))
    assert notices() == ["config_change_0000000000", "config_change_0000000001"]
    data = [running.data(f"/config/changes/{name}") for name in notices()]
    assert data == [
        b'{"version":2,"entity_path":"topics/t"}',
        b'{"version":2,"entity_path":"brokers/1"}',
    ]
    running.clock.advance(14 * 60 * 1000)
    running.alter(broker("", ("log.retention.ms", "6", SET)))
    assert len(notices()) == 3
    assert (
        running.data(f"/config/changes/{notices()[2]}") == b'{"version":2,"entity_path":"brokers/<default>"}'
    )
    if isinstance(running.files, Chroot):
        return  # an ensemble has a clock of its own
    running.clock.advance(60 * 1000)
    running.coordination.close()
    again = RunningController(running.files)
    again.clock.advance(15 * 60 * 1000)
    again.alter(topic("t", ("flush.ms", "8", SET)))
    assert len(again.coordination.children("/config/changes") or []) == 2
    again.clock.advance(15 * 60 * 1000)
    again.alter(topic("t", ("flush.ms", "9", SET)))
    assert again.coordination.children("/config/changes") == ["config_change_0000000004"]
