"""Changing settings of topics, brokers and the whole cluster: whole (AlterConfigs) or one by one. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from ottla.controller.changes import BrokerConfigChanged, TopicConfigChanged
from ottla.controller.cluster import NO_ZNODE, BrokerSettings, ClusterImage, TopicImage
from ottla.controller.znode_formats import (
    CONFIG_CHANGE_PREFIX,
    broker_config_path,
    encode_config,
    encode_config_change,
    topic_config_path,
)
from ottla.coordination.operations import Create, SetData, Step, StepResult
from ottla.model.configs import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigType,
    InvalidSetting,
    format_value,
    setting_named,
)
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import topic_name_problem
from ottla.model.values import NamedTuple


class ResourceType(IntEnum):
    """What a setting belongs to; the codes are the wire's. Others exist there and are refused."""

    TOPIC = 2
    BROKER = 4


class ConfigOperation(IntEnum):
    """IncrementalAlterConfigs' codes."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    operation: int = ConfigOperation.SET


class ConfigAlteration(NamedTuple):
    """What a request wants of one resource, not yet checked."""

    type: int
    name: str  # a topic, a broker's id, or for brokers "" for the whole cluster
    entries: Sequence[ConfigEntry]


class ConfigResult(NamedTuple):
    type: int
    name: str
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None


class TopicConfigPlan:
    def __init__(self, topic: TopicImage, configs: dict[str, str]) -> None:
        self._topic = topic
        self._configs = configs
        path = topic_config_path(topic.name)
        self.steps = _write_steps(path, configs, topic.config_version, f"topics/{topic.name}")

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> TopicConfigChanged:
        self._topic.configs = self._configs
        self._topic.config_version = _version(answers[0])
        return TopicConfigChanged(self._topic)


class BrokerConfigPlan:
    def __init__(
        self, broker_id: int | None, settings: BrokerSettings | None, configs: dict[str, str]
    ) -> None:
        self._broker_id = broker_id
        self._configs = configs
        path = broker_config_path(broker_id)
        version = NO_ZNODE if settings is None else settings.version
        self.steps = _write_steps(path, configs, version, path.removeprefix("/config/"))

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> BrokerConfigChanged:
        image.broker_settings[self._broker_id] = BrokerSettings(self._configs, _version(answers[0]))
        return BrokerConfigChanged(self._broker_id)


def decide_alter(
    image: ClusterImage, alteration: ConfigAlteration, config: BrokerConfig, *, incremental: bool
) -> TopicConfigPlan | BrokerConfigPlan:
    """The plan of an alteration, or Refused. `config` is what the broker runs with now."""
    _check_entries(alteration.entries, incremental)
    if alteration.type == ResourceType.TOPIC:
        return _alter_topic(image, alteration, config, incremental)
    if alteration.type == ResourceType.BROKER:
        return _alter_broker(image, alteration, config, incremental)
    raise Refused(
        ErrorCode.INVALID_REQUEST,
        f"resource type {alteration.type}: only settings of topics (2) and brokers (4) can be changed",
    )


def _check_entries(entries: Sequence[ConfigEntry], incremental: bool) -> None:
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise Refused(ErrorCode.INVALID_REQUEST, "a setting is named more than once")
    for entry in entries:
        if incremental and entry.operation not in tuple(ConfigOperation):
            raise Refused(ErrorCode.INVALID_REQUEST, f"unknown operation {entry.operation} on {entry.name}")
        deletes = incremental and entry.operation == ConfigOperation.DELETE
        if entry.value is None and not deletes:
            raise Refused(ErrorCode.INVALID_REQUEST, f"no value is given for {entry.name}")


def _alter_topic(
    image: ClusterImage, alteration: ConfigAlteration, config: BrokerConfig, incremental: bool
) -> TopicConfigPlan:
    name = alteration.name
    if not name:
        raise Refused(ErrorCode.INVALID_REQUEST, "a topic must be named; topics have no common settings")
    if (problem := topic_name_problem(name)) is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = image.topics.get(name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    try:
        configs = altered(topic.configs, alteration.entries, incremental, ResourceType.TOPIC)
        config.topic_config(configs)
    except InvalidSetting as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    return TopicConfigPlan(topic, configs)


def _alter_broker(
    image: ClusterImage, alteration: ConfigAlteration, config: BrokerConfig, incremental: bool
) -> BrokerConfigPlan:
    broker_id = _broker_id(image, alteration.name)
    settings = image.broker_settings.get(broker_id)
    try:
        configs = altered(
            {} if settings is None else settings.configs, alteration.entries, incremental, ResourceType.BROKER
        )
        if broker_id is None:
            config.with_dynamic(configs, {})
        else:
            config.with_dynamic(image.broker_configs(None), configs)
    except InvalidSetting as error:
        # Not INVALID_CONFIG: Kafka answers so for brokers, and its clients know it (KAFKA-13609).
        raise Refused(ErrorCode.INVALID_REQUEST, str(error)) from None
    return BrokerConfigPlan(broker_id, settings, configs)


def _broker_id(image: ClusterImage, name: str) -> int | None:
    if not name:
        return None
    if not name.isascii() or not name.isdigit():
        raise Refused(ErrorCode.INVALID_REQUEST, f"a broker is named by its id, a number, not by {name!r}")
    if int(name) not in image.brokers:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"no broker has the id {name}; there are {sorted(image.brokers)}"
        )
    return int(name)


def altered(
    configs: Mapping[str, str], entries: Sequence[ConfigEntry], incremental: bool, resource: ResourceType
) -> dict[str, str]:
    """What is set after `entries`: all of them and nothing else, or each as its operation says."""
    if not incremental:
        return {entry.name: entry.value for entry in entries if entry.value is not None}
    result = dict(configs)
    for entry in entries:
        if entry.operation == ConfigOperation.DELETE:
            result.pop(entry.name, None)
        elif entry.operation == ConfigOperation.SET:
            assert entry.value is not None
            result[entry.name] = entry.value
        else:
            result[entry.name] = _altered_list(result.get(entry.name), entry, resource)
    return result


def _altered_list(present: str | None, entry: ConfigEntry, resource: ResourceType) -> str:
    setting = setting_named(entry.name, TOPIC_SETTINGS if resource is ResourceType.TOPIC else BROKER_SETTINGS)
    if setting.type is not ConfigType.LIST:
        raise InvalidSetting(
            f"{entry.name} is no list: it can be set and deleted, not appended to or subtracted from"
        )
    if present is None:
        present = format_value(setting.default)
    items = _items(present or "")
    assert entry.value is not None
    for item in _items(entry.value):
        if entry.operation == ConfigOperation.SUBTRACT:
            items = [other for other in items if other != item]
        elif item not in items:
            items.append(item)
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _write_steps(path: str, configs: Mapping[str, str], version: int, entity: str) -> list[Step]:
    data = encode_config(configs)
    write = Create(path, data) if version == NO_ZNODE else SetData(path, data, version)
    # Other brokers watch for these notices and read the settings again.
    return [write, Create(CONFIG_CHANGE_PREFIX, encode_config_change(entity), sequential=True)]


def _version(answer: StepResult) -> int:
    assert answer.stat is not None
    return answer.stat.version
