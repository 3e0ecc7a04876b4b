"""DescribeConfigs: every setting with its value and where that comes from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calls import create_topic
from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS, ConfigSource
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.testing import BrokerProcess
from wire import WireClient

TOPIC, BROKER = 2, 4
Keys = tuple[str, ...] | None


def describe(
    client: WireClient, kind: int, name: str, keys: Keys = None, version: int = 4, **include: bool
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], **include)
    (result,) = client.call(request, version).results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def settings(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == ErrorCode.NONE, result
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_all_settings_of_a_topic(client: WireClient, version: int) -> None:
    topic = create_topic(client, configs={"retention.ms": "99"})
    found = settings(describe(client, TOPIC, topic, version=version))
    public = {name for name, setting in TOPIC_SETTINGS.items() if not setting.internal}
    assert found.keys() == public
    own, default = found["retention.ms"], found["cleanup.policy"]
    assert (own.value, own.config_source) == ("99", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (default.value, default.config_source) == ("delete", ConfigSource.DEFAULT_CONFIG)
    assert not any(config.read_only or config.synonyms for config in found.values())
    assert all(bool(config.config_type) == (version >= 3) for config in found.values())
    assert all(config.documentation is None for config in found.values())


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_tells_all_settings_of_a_broker(client: WireClient, version: int) -> None:
    found = settings(describe(client, BROKER, "1", version=version))
    assert {name for name, setting in BROKER_SETTINGS.items() if not setting.internal} <= found.keys()
    listeners, partitions = found["listeners"], found["num.partitions"]
    assert (listeners.config_source, listeners.read_only) == (ConfigSource.STATIC_BROKER_CONFIG, True)
    assert (partitions.value, partitions.config_source) == ("1", ConfigSource.DEFAULT_CONFIG)


def test_only_the_settings_that_were_asked_for(client: WireClient) -> None:
    topic = create_topic(client)
    keys = ("cleanup.policy", "retention.ms", "no.such.setting")
    assert settings(describe(client, TOPIC, topic, keys)).keys() == {"cleanup.policy", "retention.ms"}


def test_an_empty_list_of_settings_means_all_as_in_kafka(client: WireClient) -> None:
    topic = create_topic(client)
    assert len(describe(client, TOPIC, topic, ()).configs) == len(describe(client, TOPIC, topic).configs)


@pytest.mark.parametrize("version", range(1, 5))
def test_synonyms_are_told_strongest_first(client: WireClient, version: int) -> None:
    topic = create_topic(client, configs={"retention.ms": "99"})
    found = settings(describe(client, TOPIC, topic, ("retention.ms",), version, include_synonyms=True))
    synonyms = found["retention.ms"].synonyms
    assert (synonyms[0].name, synonyms[0].value, synonyms[0].source) == (
        "retention.ms",
        "99",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
    )
    assert synonyms[-1].source == ConfigSource.DEFAULT_CONFIG
    assert [synonym.source for synonym in synonyms] == sorted(synonym.source for synonym in synonyms)


@pytest.mark.parametrize("version", [3, 4])
def test_documentation_is_told_to_those_who_ask(client: WireClient, version: int) -> None:
    topic = create_topic(client)
    found = settings(describe(client, TOPIC, topic, None, version, include_documentation=True))
    assert all(config.documentation for config in found.values())


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there(client: WireClient, kind: int, name: str, code: ErrorCode) -> None:
    result = describe(client, kind, name)
    assert ErrorCode(result.error_code) == code
    assert result.error_message
    assert result.configs == ()


def test_several_resources_are_answered_in_their_order(client: WireClient) -> None:
    topic = create_topic(client)
    resources = [DescribeConfigsResource(*each) for each in ((TOPIC, topic), (BROKER, "9"), (BROKER, "1"))]
    results = client.call(DescribeConfigsRequest(resources), 4).results
    assert [(each.resource_name, ErrorCode(each.error_code)) for each in results] == [
        (topic, ErrorCode.NONE),
        ("9", ErrorCode.INVALID_REQUEST),
        ("1", ErrorCode.NONE),
    ]


@pytest.fixture(scope="module")
def configured() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings={"log.retention.hours": "5"}) as broker:
        yield broker


def test_a_brokers_setting_shows_in_its_topics_until_something_stronger_comes(
    configured: BrokerProcess,
) -> None:
    def retention(client: WireClient, topic: str) -> tuple[str | None, int]:
        (config,) = describe(client, TOPIC, topic, ("retention.ms",)).configs
        return config.value, config.config_source

    def set_default(client: WireClient, operation: int) -> None:
        alteration = AlterableConfig("log.retention.ms", operation, "1000" if operation == 0 else None)
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, "", [alteration])])
        (result,) = client.call(request, 1).responses
        assert result.error_code == ErrorCode.NONE, result

    with WireClient(configured.bootstrap) as client:
        topic = create_topic(client)
        assert retention(client, topic) == (str(5 * 3_600_000), ConfigSource.STATIC_BROKER_CONFIG)
        set_default(client, 0)
        assert retention(client, topic) == ("1000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        (config,) = describe(client, BROKER, "").configs
        assert (config.name, config.value) == ("log.retention.ms", "1000")
        set_default(client, 1)
        assert retention(client, topic) == (str(5 * 3_600_000), ConfigSource.STATIC_BROKER_CONFIG)
        assert describe(client, BROKER, "").configs == ()
