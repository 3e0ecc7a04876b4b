"""Texts to values and back, and what is said about a wrong one."""

from __future__ import annotations

import re

import pytest

from ottla.model.config_types import (
    ConfigType,
    Setting,
    Value,
    at_least,
    between,
    format_value,
    nearest,
    one_of,
    parse,
    some_of,
    some_or_none_of,
)
from ottla.model.configs import BROKER_SETTINGS, TOPIC_SETTINGS, InvalidSetting, setting_named


def setting(kind: ConfigType, **others: object) -> Setting:
    return Setting("a.setting", kind, default=others.pop("default", None), doc="", **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, "true", True),
        (ConfigType.BOOLEAN, " FALSE ", False),
        (ConfigType.INT, "2147483647", 2**31 - 1),
        (ConfigType.INT, " -2147483648 ", -(2**31)),
        (ConfigType.INT, "+7", 7),
        (ConfigType.SHORT, "-32768", -32768),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (ConfigType.DOUBLE, "3", 3.0),
        (ConfigType.LIST, "", ()),
        (ConfigType.LIST, "compact, delete", ("compact", "delete")),
        (ConfigType.STRING, " zstd ", "zstd"),
        (ConfigType.PASSWORD, " kept as it is ", " kept as it is "),
    ],
)
def test_a_text_is_read_as_kafka_reads_it(kind: ConfigType, text: str, value: Value) -> None:
    parsed = parse(setting(kind), text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (ConfigType.BOOLEAN, "yes", "true or false"),
        (ConfigType.INT, "1_000", "a whole number of 32 bits"),
        (ConfigType.INT, "١", "a whole number of 32 bits"),
        (ConfigType.INT, "1.5", "a whole number of 32 bits"),
        (ConfigType.INT, "", "a whole number of 32 bits"),
        (ConfigType.INT, "9" * 10_000, "a whole number of 32 bits"),
        (ConfigType.LONG, "9223372036854775808", "a whole number of 64 bits"),
        (ConfigType.DOUBLE, "nan", "a number"),
        (ConfigType.DOUBLE, "1e999", "a number"),
        (ConfigType.DOUBLE, "half", "a number"),
    ],
)
def test_a_wrong_text_is_refused_by_name_value_and_expectation(
    kind: ConfigType, text: str, expected: str
) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        parse(setting(kind), text)
    assert str(refusal.value) == f"a.setting={text}: not valid, expected {expected}"


def test_a_refused_password_is_not_repeated() -> None:
    secret = setting(ConfigType.PASSWORD, rule=one_of("right"))
    with pytest.raises(InvalidSetting) as refusal:
        parse(secret, "hunter2")
    assert "hunter2" not in str(refusal.value)


def test_rules_are_told_in_words() -> None:
    with pytest.raises(InvalidSetting, match=r"a\.setting=0: not valid, .* 1 or more"):
        parse(setting(ConfigType.INT, rule=at_least(1)), "0")
    with pytest.raises(InvalidSetting, match=r"expected a number, from 0 to 1"):
        parse(setting(ConfigType.DOUBLE, rule=between(0, 1)), "1.01")
    with pytest.raises(InvalidSetting, match=r"expected a text, one of red, green"):
        parse(setting(ConfigType.STRING, rule=one_of("red", "green")), "blue")


@pytest.mark.parametrize("text", ["", "delete,archive", "Delete", "compact,"])
def test_a_cleanup_policy_is_a_list_of_known_policies_each_once(text: str) -> None:
    with pytest.raises(InvalidSetting, match="one or more of compact, delete"):
        parse(setting(ConfigType.LIST, rule=some_of("compact", "delete")), text)


def test_what_a_list_names_twice_counts_once() -> None:
    rule = some_of("compact", "delete")
    assert parse(setting(ConfigType.LIST, rule=rule), "delete,compact,delete") == ("delete", "compact")


def test_a_list_may_be_empty_where_its_rule_says_so() -> None:
    assert parse(setting(ConfigType.LIST, rule=some_or_none_of("compact", "delete")), "") == ()
    with pytest.raises(InvalidSetting, match="of compact, delete, or empty"):
        parse(setting(ConfigType.LIST, rule=some_or_none_of("compact", "delete")), ",")


@pytest.mark.parametrize(
    ("name", "refused", "taken"),
    [
        ("segment.bytes", "1048575", "1048576"),
        ("min.insync.replicas", "0", "1"),
        ("retention.ms", "-2", "-1"),
        ("compression.gzip.level", "0", "9"),
        ("compression.lz4.level", "18", "17"),
        ("compression.zstd.level", "23", "-131072"),
        ("message.timestamp.type", "createtime", "LogAppendTime"),
        ("compression.type", "none", "uncompressed"),
        ("max.compaction.lag.ms", "0", "1"),
        ("flush.messages", "0", "9223372036854775807"),
    ],
)
def test_topic_settings_have_kafkas_limits(name: str, refused: str, taken: str) -> None:
    parse(TOPIC_SETTINGS[name], taken)
    with pytest.raises(InvalidSetting, match=re.escape(f"{name}={refused}: not valid")):
        parse(TOPIC_SETTINGS[name], refused)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("remote.storage.enable", "true", "tiered storage is not offered; only 'false' is valid"),
        ("local.retention.ms", "1000", "tiered storage is not offered; only '-2' is valid"),
        ("leader.replication.throttled.replicas", "*", "not throttled yet; only '' is valid"),
    ],
)
def test_what_is_not_implemented_is_refused_unless_it_is_the_default(
    name: str, text: str, reason: str
) -> None:
    default = format_value(TOPIC_SETTINGS[name].default)
    assert default is not None
    assert not TOPIC_SETTINGS[name].supported
    parse(TOPIC_SETTINGS[name], default)
    with pytest.raises(InvalidSetting) as refusal:
        parse(TOPIC_SETTINGS[name], text)
    assert str(refusal.value).startswith(f"{name}={text}: ")
    assert reason in str(refusal.value)


def test_an_unsupported_setting_without_default_must_be_left_unset() -> None:
    setting = BROKER_SETTINGS["broker.rack"]._replace(unsupported="it is not supported yet")
    with pytest.raises(InvalidSetting, match=r"not supported yet; leave it unset$"):
        parse(setting, "localhost:2181")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.mss", "topic setting retention.mss does not exist; did you mean retention.ms?"),
        (
            "log.retention.hours",
            "topic setting log.retention.hours does not exist; topics call it retention.ms",
        ),
        ("completely.else", "topic setting completely.else does not exist"),
        (
            "message.timestamp.difference.max.ms",
            "topic setting message.timestamp.difference.max.ms cannot be used: Kafka 4 has removed it; use "
            "message.timestamp.before.max.ms and message.timestamp.after.max.ms",
        ),
    ],
)
def test_an_unknown_topic_setting_is_refused_with_a_hint(name: str, text: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        setting_named(name, TOPIC_SETTINGS)
    assert str(refusal.value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.partition", "broker setting num.partition does not exist; did you mean num.partitions?"),
        ("retention.ms", "broker setting retention.ms does not exist; brokers call it log.retention.ms"),
        ("process.roles", "broker setting process.roles cannot be used: Ottla has no Raft quorum"),
        (
            "ssl.keystore.location",
            "broker setting ssl.keystore.location cannot be used: TLS is not offered yet",
        ),
        ("quota.window.num", "broker setting quota.window.num cannot be used: quotas are not offered yet"),
    ],
)
def test_an_unknown_broker_setting_is_refused_with_a_hint(name: str, text: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        setting_named(name, BROKER_SETTINGS)
    assert str(refusal.value).startswith(text)


def test_nearest_ignores_case_and_gives_up_on_strangers() -> None:
    assert nearest("Retention.MS", TOPIC_SETTINGS) == "retention.ms"
    assert nearest("xyz", TOPIC_SETTINGS) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (0.5, "0.5"),
        (("a", "b"), "a,b"),
        ((), ""),
        ("x", "x"),
        (None, None),
    ],
)
def test_values_are_shown_as_kafkas_tools_show_them(value: Value, text: str | None) -> None:
    assert format_value(value) == text
