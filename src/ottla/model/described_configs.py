"""Settings as DescribeConfigs shows them: value, source, and every place that would give a value."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.model.broker_config import BrokerConfig, SourcedValue
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config_types import ConfigSource, Setting, format_value
from ottla.model.topic_settings import TOPIC_SETTINGS
from ottla.model.values import dataclass


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """A setting as DescribeConfigs reports it."""

    setting: Setting
    value: str | None  # None: not set, or a secret
    source: ConfigSource
    read_only: bool
    synonyms: tuple[SourcedValue, ...]  # strongest first; the first one counts


def describe_topic(overrides: Mapping[str, str], broker: BrokerConfig) -> list[DescribedSetting]:
    """Every setting of a topic: its value, and all places that would give it one."""
    overrides, _ = broker.usable_overrides(overrides)
    values = broker.topic_values(overrides)
    described = []
    for name, setting in TOPIC_SETTINGS.items():
        value = format_value(values.value(name))
        synonyms = list(broker.sources(synonym.name for synonym in setting.synonyms))
        if name in overrides:
            synonyms.insert(0, SourcedValue(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG))
        elif setting.internal:
            continue
        described.append(_described(setting, value, synonyms, read_only=False))
    return described


def describe_broker(broker: BrokerConfig) -> list[DescribedSetting]:
    """Every setting of this broker."""
    described = []
    for name, setting in BROKER_SETTINGS.items():
        value = format_value(broker.value(name))
        synonyms = list(broker.sources((name, *(synonym.name for synonym in setting.synonyms))))
        if setting.internal and value == format_value(setting.default):
            continue
        described.append(_described(setting, value, synonyms, setting.update_mode == "read-only"))
    return described


def describe_broker_defaults(broker: BrokerConfig) -> list[DescribedSetting]:
    """What the cluster sets for all its brokers (the broker resource without a name)."""
    described = []
    for name in broker.set_names(ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG):
        synonyms = [
            synonym
            for synonym in broker.sources((name,))
            if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        ]
        described.append(_described(BROKER_SETTINGS[name], synonyms[0].value, synonyms, read_only=False))
    return described


def _described(
    setting: Setting, value: str | None, synonyms: list[SourcedValue], read_only: bool
) -> DescribedSetting:
    if setting.sensitive:
        value = None
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return DescribedSetting(setting, value, source, read_only, tuple(synonyms))
