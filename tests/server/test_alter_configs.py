"""AlterConfigs replaces all settings of a resource; IncrementalAlterConfigs changes single ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import append, batch_of, create_topic, produce
from ottla.model.configs import ConfigSource
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import alter_configs, incremental_alter_configs
from ottla.protocol.messages.alter_configs import AlterConfigsRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.testing import BrokerProcess
from wire import WireClient

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def replace(
    client: WireClient,
    name: str,
    configs: dict[str, str | None],
    kind: int = TOPIC,
    version: int = 2,
    validate_only: bool = False,
) -> tuple[ErrorCode, str | None]:
    entries = [alter_configs.AlterableConfig(*each) for each in configs.items()]
    resource = alter_configs.AlterConfigsResource(kind, name, entries)
    (result,) = client.call(AlterConfigsRequest([resource], validate_only), version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return ErrorCode(result.error_code), result.error_message


def change(
    client: WireClient,
    name: str,
    *entries: tuple[str, int, str | None],
    kind: int = TOPIC,
    version: int = 1,
    validate_only: bool = False,
) -> tuple[ErrorCode, str | None]:
    alterations = [incremental_alter_configs.AlterableConfig(*each) for each in entries]
    resource = incremental_alter_configs.AlterConfigsResource(kind, name, alterations)
    (result,) = client.call(IncrementalAlterConfigsRequest([resource], validate_only), version).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return ErrorCode(result.error_code), result.error_message


def own_configs(client: WireClient, topic: str) -> dict[str, str | None]:
    """What is set for the topic itself."""
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, topic, None)])
    (result,) = client.call(request, 4).results
    return {
        config.name: config.value
        for config in result.configs
        if config.config_source == ConfigSource.DYNAMIC_TOPIC_CONFIG
    }


DONE = (ErrorCode.NONE, None)


# -- AlterConfigs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_every_version_replaces_all_settings(client: WireClient, version: int) -> None:
    topic = create_topic(client, configs={"retention.ms": "99", "max.message.bytes": "5000"})
    assert replace(client, topic, {"retention.ms": "77", "segment.ms": "1000"}, version=version) == DONE
    assert own_configs(client, topic) == {"retention.ms": "77", "segment.ms": "1000"}
    assert replace(client, topic, {}, version=version) == DONE
    assert own_configs(client, topic) == {}


@pytest.mark.parametrize("version", range(3))
def test_validation_replaces_nothing(client: WireClient, version: int) -> None:
    topic = create_topic(client, configs={"retention.ms": "99"})
    assert replace(client, topic, {"retention.ms": "77"}, version=version, validate_only=True) == DONE
    code, _ = replace(client, topic, {"retention.ms": "x"}, version=version, validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG
    assert own_configs(client, topic) == {"retention.ms": "99"}


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"no.such.setting": "1"}, ErrorCode.INVALID_CONFIG),
        ({"retention.ms": "long"}, ErrorCode.INVALID_CONFIG),
        ({"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        ({"retention.ms": "5", "cleanup.policy": "burn"}, ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_bad_setting_changes_nothing(
    client: WireClient, configs: dict[str, str | None], code: ErrorCode
) -> None:
    topic = create_topic(client, configs={"retention.ms": "99"})
    told, text = replace(client, topic, configs)
    assert told == code
    assert text
    assert own_configs(client, topic) == {"retention.ms": "99"}


# -- IncrementalAlterConfigs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(2))
def test_every_version_sets_deletes_appends_and_subtracts(client: WireClient, version: int) -> None:
    topic = create_topic(client, configs={"retention.ms": "99", "max.message.bytes": "5000"})
    entries = (
        ("retention.ms", SET, "77"),
        ("max.message.bytes", DELETE, None),
        ("cleanup.policy", APPEND, "compact"),
    )
    assert change(client, topic, *entries, version=version) == DONE
    assert own_configs(client, topic) == {"retention.ms": "77", "cleanup.policy": "delete,compact"}
    assert change(client, topic, ("cleanup.policy", SUBTRACT, "delete"), version=version) == DONE
    assert own_configs(client, topic) == {"retention.ms": "77", "cleanup.policy": "compact"}


@pytest.mark.parametrize("version", range(2))
def test_validation_changes_nothing(client: WireClient, version: int) -> None:
    topic = create_topic(client)
    assert change(client, topic, ("retention.ms", SET, "5"), version=version, validate_only=True) == DONE
    assert own_configs(client, topic) == {}


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([("retention.ms", APPEND, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("no.such.setting", SET, "5")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_bad_change_changes_nothing(
    client: WireClient, entries: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    topic = create_topic(client)
    assert change(client, topic, *entries)[0] == code
    assert own_configs(client, topic) == {}


# -- both ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_REQUEST),
        (BROKER, "8", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_cannot_be_altered(client: WireClient, kind: int, name: str, code: ErrorCode) -> None:
    assert replace(client, name, {"retention.ms": "5"}, kind)[0] == code
    assert change(client, name, ("retention.ms", SET, "5"), kind=kind)[0] == code


def test_a_resource_named_twice_is_refused_and_others_are_changed(client: WireClient) -> None:
    topic, other = create_topic(client), create_topic(client)
    entry = [alter_configs.AlterableConfig("retention.ms", "5")]
    resources = [alter_configs.AlterConfigsResource(TOPIC, name, entry) for name in (topic, other, topic)]
    results = client.call(AlterConfigsRequest(resources), 2).responses
    assert {each.resource_name: ErrorCode(each.error_code) for each in results} == {
        topic: ErrorCode.INVALID_REQUEST,
        other: ErrorCode.NONE,
    }
    assert (own_configs(client, topic), own_configs(client, other)) == ({}, {"retention.ms": "5"})


def test_a_change_holds_at_once_and_over_a_restart(client: WireClient) -> None:
    topic = create_topic(client)
    append(client, topic, b"x" * 2_000)
    assert change(client, topic, ("max.message.bytes", SET, "1000")) == DONE
    assert produce(client, topic, batch_of(b"x" * 2_000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(client, topic, ("max.message.bytes", DELETE, None)) == DONE
    append(client, topic, b"x" * 2_000)
    assert change(client, topic, ("message.timestamp.type", SET, "LogAppendTime")) == DONE
    assert produce(client, topic, batch_of(b"v")).log_append_time_ms > 0
    assert change(client, topic, ("cleanup.policy", SET, "compact")) == DONE
    assert produce(client, topic, batch_of(b"v", key=None)).error_code == ErrorCode.INVALID_RECORD


@pytest.fixture(scope="module")
def own_broker() -> Iterator[BrokerProcess]:
    with BrokerProcess() as broker:
        yield broker


def test_a_brokers_setting_changes_its_topics(own_broker: BrokerProcess) -> None:
    with WireClient(own_broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"x" * 2_000)
        for name in ("", "1"):
            assert change(client, name, ("message.max.bytes", SET, "1000"), kind=BROKER) == DONE
            assert produce(client, topic, batch_of(b"x" * 2_000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
            assert change(client, name, ("message.max.bytes", DELETE, None), kind=BROKER) == DONE
            append(client, topic, b"x" * 2_000)
        assert change(client, "1", ("listeners", SET, "x"), kind=BROKER)[0] == ErrorCode.INVALID_REQUEST
        assert replace(client, "1", {"message.max.bytes": "1000"}, BROKER) == DONE
    for end in (own_broker.kill, own_broker.stop):
        end()
        own_broker.start()
        with WireClient(own_broker.bootstrap) as client:
            assert produce(client, topic, batch_of(b"x" * 2_000)).error_code == ErrorCode.MESSAGE_TOO_LARGE
