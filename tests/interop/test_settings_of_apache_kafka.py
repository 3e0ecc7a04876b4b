"""Every setting that a real Apache Kafka 4.3 knows works here, or is refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from interop.apache_kafka import apache_kafka
from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS, InvalidSetting, setting_named
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPIC = "settings"
OUR_DEFAULTS = {"flush.messages": "1"}  # the one promise that is not Kafka's
ONLY_HERE = {"message.downconversion.enable"}  # which Kafka 4 takes and forgets; so do we, with a word
OFFERED = [name for name, each in TOPIC_SETTINGS.items() if name not in ONLY_HERE and not each.internal]
VALUES = (
    *("-131073", "-3", "-2", "-1", "0", "0.5", "1", "2", "3", "4", "9", "10", "17", "18", "22", "23"),
    *("1048575", "1048576", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"),
    *("true", "TRUE", "yes", "delete", "compact", "compact,delete", "compact,compact", "compact,other"),
    *("gzip", "GZIP", "producer", "none", "CreateTime", "LogAppendTime", "*", "0:1", ""),
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminClient]:
    with apache_kafka(tmp_path_factory.mktemp("kafka")) as address:
        yield _with_topic(address)


@pytest.fixture(scope="module")
def ottla() -> Iterator[AdminClient]:
    with BrokerProcess() as broker:
        yield _with_topic(broker.bootstrap)


def _with_topic(bootstrap: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(60)
    return admin


def _described(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(kind, name)
    described: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(60)
    return described


def _refusal(admin: AdminClient, name: str, value: str) -> str | None:
    """What the broker says against the value; None: it would take it."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    try:
        admin.incremental_alter_configs([resource], validate_only=True)[resource].result(60)
    except KafkaException as error:
        return str(error.args[0].str())
    return None


def test_topics_have_the_settings_and_defaults_of_apache_kafka(
    kafka: AdminClient, ottla: AdminClient
) -> None:
    theirs = {name: entry.value for name, entry in _described(kafka, ResourceType.TOPIC, TOPIC).items()}
    ours = {name: entry.value for name, entry in _described(ottla, ResourceType.TOPIC, TOPIC).items()}
    assert ours.keys() - theirs.keys() == ONLY_HERE
    assert {name: ours[name] for name in theirs} == theirs | OUR_DEFAULTS


@pytest.mark.parametrize("name", OFFERED)
def test_a_topic_takes_and_refuses_the_same_values(name: str, kafka: AdminClient, ottla: AdminClient) -> None:
    """But for what is not offered: there anything but the default is refused, and it is said why."""
    setting = TOPIC_SETTINGS[name]
    different = {}
    for value in VALUES:
        theirs, ours = _refusal(kafka, name, value), _refusal(ottla, name, value)
        if theirs is None and ours is not None and setting.unsupported and setting.unsupported in ours:
            continue
        if (theirs is None) != (ours is None):
            different[value] = {"kafka": theirs, "ottla": ours}
        assert ours is None or name in ours
    assert not different


def test_every_setting_of_a_broker_works_or_is_refused_with_a_reason(kafka: AdminClient) -> None:
    unknown = []
    described = _described(kafka, ResourceType.BROKER, "1")
    assert len(described) > 200
    for name in described:
        if name not in BROKER_SETTINGS:
            with pytest.raises(InvalidSetting) as refused:
                setting_named(name, BROKER_SETTINGS)
            if "cannot be used" not in str(refused.value):
                unknown.append(name)
    assert unknown == []
