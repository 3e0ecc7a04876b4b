"""The tables themselves: complete, consistent, and at Kafka's defaults except where we say otherwise."""

from __future__ import annotations

import pytest

from ottla.model.config_types import ConfigType, Setting, format_value, parse
from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS
from ottla.model.refused_settings import REFUSED_PREFIXES

ALL_SETTINGS = [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]
SETTING = pytest.mark.parametrize(
    "setting", ALL_SETTINGS, ids=lambda setting: f"{setting.scope}:{setting.name}"
)

# Kafka 4's documented topic settings and defaults, as DescribeConfigs shows them; ours where they differ.
KAFKA_TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "1",  # Kafka: 9223372036854775807
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.downconversion.enable": "true",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def test_every_documented_topic_setting_is_there_with_its_default() -> None:
    described = {
        name: format_value(setting.default)
        for name, setting in TOPIC_SETTINGS.items()
        if not setting.internal
    }
    assert described == KAFKA_TOPIC_DEFAULTS


@SETTING
def test_a_setting_says_what_it_is_for(setting: Setting) -> None:
    assert len(setting.doc) > 20
    assert setting.doc[0].isupper()
    assert setting.doc.endswith(".")
    assert not (setting.unsupported and setting.inert)


@SETTING
def test_the_default_is_a_valid_value_of_its_own_type(setting: Setting) -> None:
    text = format_value(setting.default)
    if text is not None:
        assert parse(setting, text) == setting.default
        assert type(parse(setting, text)) is type(setting.default)


@SETTING
def test_a_whole_number_is_held_to_the_bits_of_its_type(setting: Setting) -> None:
    bits = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}.get(setting.type)
    if bits is not None:
        with pytest.raises(ValueError, match=f"whole number of {bits} bits"):
            parse(setting, str(1 << (bits - 1)))


@pytest.mark.parametrize("setting", TOPIC_SETTINGS.values(), ids=lambda setting: setting.name)
def test_a_topic_setting_and_its_broker_default_agree(setting: Setting) -> None:
    for synonym in setting.synonyms:
        broker_setting = BROKER_SETTINGS[synonym.name]
        assert broker_setting.scope == "broker"
        if broker_setting.default is None:
            assert synonym is not setting.synonyms[-1], "the last synonym must give the default"
        elif synonym is setting.synonyms[-1]:
            assert isinstance(setting.default, int) or synonym.factor == 1
            expected = broker_setting.default
            assert setting.default == (
                expected * synonym.factor if isinstance(expected, int) and synonym.factor != 1 else expected
            )


def test_broker_defaults_that_users_meet_first() -> None:
    defaults = {
        name: BROKER_SETTINGS[name].default for name in ("num.partitions", "default.replication.factor")
    }
    assert defaults == {"num.partitions": 1, "default.replication.factor": 1}
    assert BROKER_SETTINGS["listeners"].default == "PLAINTEXT://127.0.0.1:9092"
    assert BROKER_SETTINGS["auto.create.topics.enable"].default is True
    assert BROKER_SETTINGS["log.flush.interval.messages"].default == 1


def test_a_refused_name_hides_no_setting_that_exists() -> None:
    shadowed = [
        (prefix, name) for prefix in REFUSED_PREFIXES for name in BROKER_SETTINGS if name.startswith(prefix)
    ]
    assert shadowed == []


def test_names_are_keys_of_their_table() -> None:
    assert all(name == setting.name for name, setting in TOPIC_SETTINGS.items())
    assert all(name == setting.name for name, setting in BROKER_SETTINGS.items())
