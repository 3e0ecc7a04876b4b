"""No setting is taken without a word: it has an effect somewhere, or it says that it has none and why."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import ottla
from ottla.model.config_types import InvalidSetting, Setting, format_value, parse
from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS, BrokerConfig, setting_named
from ottla.model.topic_config import TopicConfig
from ottla.model.topic_settings import TOPIC_SETTINGS as TABLE

SOURCE = Path(ottla.__file__).parent
TABLES = {SOURCE / "model" / f"{name}.py" for name in (
    "topic_settings", "broker_settings", "network_settings", "cluster_settings", "coordinator_settings",
    "refused_settings",
)}  # fmt: skip
# Kafka's TopicConfig, complete (4.1), with what 3.9 still documents.
KAFKA_TOPIC_SETTINGS = [
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
]


@cache
def texts_and_attributes() -> tuple[frozenset[str], frozenset[str]]:
    """Every text constant and every attribute that the code reads, but for the tables themselves."""
    texts, attributes = set(), set()
    for path in SOURCE.rglob("*.py"):
        if path in TABLES:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(node.value)
            elif isinstance(node, ast.Attribute) and path.name != "topic_config.py":
                attributes.add(node.attr)
    return frozenset(texts), frozenset(attributes)


def gives_topics_their_default(name: str) -> bool:
    return any(synonym.name == name for setting in TABLE.values() for synonym in setting.synonyms)


@pytest.mark.parametrize("setting", BROKER_SETTINGS.values(), ids=lambda setting: setting.name)
def test_a_broker_setting_is_read_or_says_why_it_is_not(setting: Setting) -> None:
    texts, _ = texts_and_attributes()
    is_read = setting.name in texts or gives_topics_their_default(setting.name)
    if setting.inert or setting.unsupported:
        assert len(setting.inert or setting.unsupported) > 20
    else:
        assert is_read, "nobody reads it: give it an effect, or say in its table why it has none"


FIELDS = {
    "cleanup.policy": ("cleanup_compact", "cleanup_delete"),
    "compression.gzip.level": ("compression_level",),
    "compression.lz4.level": ("compression_level",),
    "compression.zstd.level": ("compression_level",),
    "internal.segment.bytes": ("segment_bytes",),
    "segment.ms": ("segment_ms_max",),
    "message.timestamp.type": ("message_timestamp_log_append",),
}


@pytest.mark.parametrize("setting", TOPIC_SETTINGS.values(), ids=lambda setting: setting.name)
def test_a_topic_setting_is_read_or_says_why_it_is_not(setting: Setting) -> None:
    if setting.inert or setting.unsupported:
        assert len(setting.inert or setting.unsupported) > 20
        return
    _, attributes = texts_and_attributes()
    for field in FIELDS.get(setting.name, (setting.name.replace(".", "_"),)):
        assert hasattr(TopicConfig, field)
        assert field in attributes, "nobody reads it: give it an effect, or say in its table why it has none"


@pytest.mark.parametrize("name", KAFKA_TOPIC_SETTINGS)
def test_every_setting_kafka_documents_for_topics_works_or_is_refused_with_a_reason(name: str) -> None:
    if name not in TOPIC_SETTINGS:
        with pytest.raises(InvalidSetting, match="cannot be used"):
            setting_named(name, TOPIC_SETTINGS)
        return
    setting = TOPIC_SETTINGS[name]
    if setting.unsupported:
        other = {"true": "false", "false": "true", "": "*"}.get(format_value(setting.default) or "", "7")
        with pytest.raises(InvalidSetting) as refused:
            parse(setting, other)
        assert setting.unsupported in str(refused.value)


@pytest.mark.parametrize(
    "setting", [each for each in BROKER_SETTINGS.values() if each.inert], ids=lambda setting: setting.name
)
def test_a_setting_without_effect_is_described_so_and_warned_of(setting: Setting) -> None:
    assert setting.inert in setting.described
    other = {"true": "false", "false": "true"}.get(format_value(setting.default) or "")
    if other is None and isinstance(setting.default, int):
        other = str(setting.default + 1)
    if other is None:
        return
    try:
        warnings = BrokerConfig({setting.name: other}).warnings
    except InvalidSetting:
        return  # another value would be needed that fits the others
    assert [warning for warning in warnings if warning.startswith(f"{setting.name}=")]
