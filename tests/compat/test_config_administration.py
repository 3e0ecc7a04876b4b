"""Settings are described and changed by stock admin clients, and a change takes effect at once."""

from __future__ import annotations

import pytest

from compat.admins.admin import FROM_BROKER, FROM_DEFAULT, FROM_STATIC, FROM_TOPIC, Admin, Refusal, refusal_of
from compat.admins.confluent import ConfluentAdmin
from compat.admins.kafka_python import KafkaPythonAdmin
from compat.broker import CreateTopic, unique_name
from compat.cases import QUICK
from compat.clients.confluent import Confluent, produce_code
from compat.record import CREATE_TIME, LOG_APPEND_TIME, Record
from compat.waiting import eventually
from ottla.model.errors import ErrorCode

# Every setting of a topic that Apache Kafka 4.3 names, with its default there.
TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
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
# Ottla syncs before it acknowledges unless told otherwise; Kafka leaves syncing to the operating system.
DEFAULTS_OF_OUR_OWN = {"flush.messages"}


def _write(bootstrap: str, topic: str, size: int) -> None:
    Confluent().write(bootstrap, topic, 0, [Record("sized", value=b"v" * size)], QUICK)


def _settings_of_its_own(admin: Admin, topic: str) -> dict[str, str | None]:
    configs = admin.topic_configs(topic)
    return {name: config.value for name, config in configs.items() if config.source == FROM_TOPIC}


def test_every_topic_setting_has_kafkas_name_and_default(admin: Admin, create_topic: CreateTopic) -> None:
    configs = admin.topic_configs(create_topic("plain"))
    assert TOPIC_DEFAULTS.keys() - configs.keys() == set(), "settings that are missing"
    shown = {name: configs[name].value for name in TOPIC_DEFAULTS.keys() - DEFAULTS_OF_OUR_OWN}
    assert shown == {name: value for name, value in TOPIC_DEFAULTS.items() if name in shown}
    assert not any(config.read_only for config in configs.values())
    assert configs["retention.ms"].source == FROM_DEFAULT


def test_incremental_change_sets_one_setting_and_keeps_the_others(
    admin: Admin, create_topic: CreateTopic
) -> None:
    topic = create_topic("changed", configs={"retention.ms": "1000000", "segment.bytes": "2000000"})
    admin.change_topic_configs(topic, {"retention.ms": ("SET", "2000000")})
    wanted = {"retention.ms": "2000000", "segment.bytes": "2000000"}
    assert eventually(lambda: _settings_of_its_own(admin, topic) == wanted), _settings_of_its_own(
        admin, topic
    )
    admin.change_topic_configs(topic, {"retention.ms": ("DELETE", None)})
    assert eventually(lambda: _settings_of_its_own(admin, topic) == {"segment.bytes": "2000000"})
    assert admin.topic_configs(topic)["retention.ms"].value == TOPIC_DEFAULTS["retention.ms"]


def test_lists_are_appended_to_and_subtracted_from(admin: Admin, create_topic: CreateTopic) -> None:
    topic = create_topic("lists", configs={"cleanup.policy": "delete"})
    admin.change_topic_configs(topic, {"cleanup.policy": ("APPEND", "compact")})
    assert eventually(lambda: admin.topic_configs(topic)["cleanup.policy"].value == "delete,compact")
    admin.change_topic_configs(topic, {"cleanup.policy": ("SUBTRACT", "delete")})
    assert eventually(lambda: admin.topic_configs(topic)["cleanup.policy"].value == "compact")


def test_old_alter_configs_replaces_all_settings(bootstrap: str, create_topic: CreateTopic) -> None:
    admin = ConfluentAdmin(bootstrap)
    topic = create_topic("replaced", configs={"retention.ms": "1000000", "segment.bytes": "2000000"})
    admin.replace_topic_configs(topic, {"segment.ms": "3000000"})
    assert eventually(lambda: _settings_of_its_own(admin, topic) == {"segment.ms": "3000000"})


def test_old_alter_configs_works_for_kafka_python(
    python_admin: KafkaPythonAdmin, create_topic: CreateTopic
) -> None:
    """It adds what is set already by itself before it sends the whole."""
    topic = create_topic("replaced", configs={"segment.bytes": "2000000"})
    python_admin.replace_topic_configs(topic, {"segment.ms": "3000000"})
    wanted = {"segment.bytes": "2000000", "segment.ms": "3000000"}
    assert eventually(lambda: _settings_of_its_own(python_admin, topic) == wanted)


def test_validate_only_changes_nothing(admin: Admin, create_topic: CreateTopic) -> None:
    topic = create_topic("validated")
    admin.change_topic_configs(topic, {"retention.ms": ("SET", "5000000")}, validate_only=True)
    assert _settings_of_its_own(admin, topic) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"no.such.setting": ("SET", "1")},
        {"retention.ms": ("SET", "soon")},
        {"max.message.bytes": ("SET", "-1")},
        {"retention.ms": ("APPEND", "1")},
        {"cleanup.policy": ("SET", "burn")},
        # One wrong setting refuses the right ones beside it.
        {"segment.ms": ("SET", "1000000"), "retention.ms": ("SET", "soon")},
    ],
    ids=str,
)
def test_wrong_settings_are_refused_as_a_whole(
    admin: Admin, create_topic: CreateTopic, changes: dict[str, tuple[str, str | None]]
) -> None:
    topic = create_topic("refused")
    assert refusal_of(lambda: admin.change_topic_configs(topic, changes)) == ErrorCode.INVALID_CONFIG
    assert _settings_of_its_own(admin, topic) == {}


def test_settings_of_an_unknown_topic_are_refused(admin: Admin) -> None:
    def change() -> None:
        admin.change_topic_configs(unique_name("nowhere"), {"retention.ms": ("SET", "1000000")})

    assert refusal_of(change) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_max_message_bytes_takes_effect_at_once(
    admin: Admin, bootstrap: str, create_topic: CreateTopic
) -> None:
    topic = create_topic("limited")

    def fits() -> bool:
        return produce_code(bootstrap, topic, value=bytes(5000)) == ErrorCode.NONE

    assert fits()
    admin.change_topic_configs(topic, {"max.message.bytes": ("SET", "2000")})
    assert eventually(lambda: not fits())
    assert produce_code(bootstrap, topic, value=bytes(5000)) == ErrorCode.MESSAGE_TOO_LARGE
    _write(bootstrap, topic, 1000)
    admin.change_topic_configs(topic, {"max.message.bytes": ("DELETE", None)})
    assert eventually(fits)


def test_timestamp_type_takes_effect_at_once(admin: Admin, bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("stamped")

    def types() -> list[str | None]:
        _write(bootstrap, topic, 10)
        count = admin.offset(topic, 0, "latest").offset
        return [record.timestamp_type for record in Confluent().read(bootstrap, topic, {0: count})[0]]

    assert types() == [CREATE_TIME]
    admin.change_topic_configs(topic, {"message.timestamp.type": ("SET", "LogAppendTime")})
    assert eventually(lambda: types()[-1] == LOG_APPEND_TIME)
    assert types()[0] == CREATE_TIME, "what was written before keeps its type"


def test_broker_settings_are_described(admin: Admin) -> None:
    [broker] = admin.cluster().brokers
    configs = admin.broker_configs(broker)
    assert configs["auto.create.topics.enable"].value == "true"
    assert configs["num.partitions"].value == "1"
    assert configs["message.max.bytes"].value == TOPIC_DEFAULTS["max.message.bytes"]
    assert not configs["message.max.bytes"].read_only
    assert configs["log.dirs"].read_only
    assert configs["log.dirs"].source == FROM_STATIC


def test_topics_without_a_setting_follow_the_broker(admin: Admin, create_topic: CreateTopic) -> None:
    [broker] = admin.cluster().brokers
    follows = create_topic("follows")
    own = create_topic("own", configs={"index.interval.bytes": "2222"})

    def shown(topic: str) -> tuple[str | None, int]:
        config = admin.topic_configs(topic)["index.interval.bytes"]
        return config.value, config.source

    admin.change_broker_configs(broker, {"log.index.interval.bytes": ("SET", "3333")})
    try:
        assert eventually(lambda: shown(follows) == ("3333", FROM_BROKER)), shown(follows)
        assert shown(own) == ("2222", FROM_TOPIC)
    finally:
        admin.change_broker_configs(broker, {"log.index.interval.bytes": ("DELETE", None)})
    assert eventually(lambda: shown(follows) == ("4096", FROM_DEFAULT)), shown(follows)


@pytest.mark.parametrize(
    ("name", "value"),
    [("log.dirs", "elsewhere"), ("message.max.bytes", "many")],
    ids=["read only", "no number"],
)
def test_broker_settings_that_may_not_change_so_are_refused(admin: Admin, name: str, value: str) -> None:
    [broker] = admin.cluster().brokers
    with pytest.raises(Refusal) as refusal:
        admin.change_broker_configs(broker, {name: ("SET", value)})
    assert refusal.value.code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG)


def test_topics_are_listed_as_config_resources(
    python_admin: KafkaPythonAdmin, create_topic: CreateTopic
) -> None:
    topic = create_topic("resource")
    assert eventually(lambda: topic in python_admin.config_resources("TOPIC"))
    assert python_admin.config_resources("BROKER") == {
        str(broker) for broker in python_admin.cluster().brokers
    }
