"""Settings: the one place that other rooms import them from.

The tables are in `topic_settings`, in `broker_settings` with `network_settings`, `cluster_settings` and
`coordinator_settings`, and in `refused_settings`; `config_types` says what a setting is; `broker_config`,
`topic_config` and `described_configs` are settings at work.
"""

from __future__ import annotations

from ottla.model.broker_config import (
    DEFAULT_TOPIC_CONFIG,
    BrokerConfig,
    SourcedValue,
    check_dynamic,
    setting_named,
    stored_topic_config,
    topic_config,
)
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config_types import (
    ConfigSource,
    ConfigType,
    InvalidSetting,
    Setting,
    format_value,
    parse,
)
from ottla.model.described_configs import (
    DescribedSetting,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
)
from ottla.model.topic_config import TopicConfig
from ottla.model.topic_settings import TOPIC_SETTINGS

__all__ = [
    "BROKER_SETTINGS",
    "DEFAULT_TOPIC_CONFIG",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "ConfigSource",
    "ConfigType",
    "DescribedSetting",
    "InvalidSetting",
    "Setting",
    "SourcedValue",
    "TopicConfig",
    "check_dynamic",
    "describe_broker",
    "describe_broker_defaults",
    "describe_topic",
    "format_value",
    "parse",
    "setting_named",
    "stored_topic_config",
    "topic_config",
]
