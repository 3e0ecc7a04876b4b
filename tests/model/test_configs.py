"""Which value holds: topic over dynamic broker over dynamic default over start-up file over the table."""

from __future__ import annotations

import pytest

from ottla.model.configs import (
    BROKER_SETTINGS,
    DEFAULT_TOPIC_CONFIG,
    TOPIC_SETTINGS,
    BrokerConfig,
    ConfigSource,
    ConfigType,
    DescribedSetting,
    InvalidSetting,
    describe_broker,
    describe_broker_defaults,
    describe_topic,
    stored_topic_config,
    topic_config,
)

HOUR_MS = 3_600_000


def described(settings: list[DescribedSetting], name: str) -> DescribedSetting:
    return next(one for one in settings if one.setting.name == name)


def places(one: DescribedSetting) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, int(synonym.source)) for synonym in one.synonyms]


def test_a_topic_without_settings_has_ottlas_defaults() -> None:
    config = DEFAULT_TOPIC_CONFIG
    assert (config.cleanup_delete, config.cleanup_compact) == (True, False)
    assert config.retention_ms == 7 * 24 * HOUR_MS
    assert config.segment_bytes == 1 << 30
    assert config.flush_messages == 1
    assert config.durable
    assert config.max_message_bytes == 1_048_588
    assert config.compression_type == "producer"
    assert config.compression_level is None
    assert not config.message_timestamp_log_append


def test_every_layer_overrides_the_one_below() -> None:
    static = {"log.segment.bytes": "2000000"}
    cluster = {"log.segment.bytes": "3000000"}
    broker = {"log.segment.bytes": "4000000"}
    topic = {"segment.bytes": "5000000"}
    assert topic_config({}, BrokerConfig()).segment_bytes == 1 << 30
    assert topic_config({}, BrokerConfig(static)).segment_bytes == 2_000_000
    assert topic_config({}, BrokerConfig(static, cluster)).segment_bytes == 3_000_000
    assert topic_config({}, BrokerConfig(static, cluster, broker)).segment_bytes == 4_000_000
    assert topic_config(topic, BrokerConfig(static, cluster, broker)).segment_bytes == 5_000_000


@pytest.mark.parametrize(
    ("static", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 3 * 60_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.hours": "2147483647"}, 2_147_483_647 * HOUR_MS),
    ],
)
def test_the_finer_unit_of_retention_wins(static: dict[str, str], retention_ms: int) -> None:
    assert topic_config({}, BrokerConfig(static)).retention_ms == retention_ms


def test_a_layer_wins_before_a_finer_unit_does() -> None:
    config = BrokerConfig({"log.retention.minutes": "3"}, {"log.retention.ms": "1000"})
    assert topic_config({}, config).retention_ms == 1000


def test_other_settings_with_several_broker_names() -> None:
    config = topic_config({}, BrokerConfig({"log.roll.hours": "1", "log.roll.jitter.hours": "2"}))
    assert (config.segment_ms, config.segment_jitter_ms) == (HOUR_MS, 2 * HOUR_MS)
    config = topic_config({}, BrokerConfig({"log.roll.ms": "5", "log.roll.hours": "1"}))
    assert config.segment_ms == 5
    config = topic_config({}, BrokerConfig({"log.flush.scheduler.interval.ms": "9"}))
    assert config.flush_ms == 9
    config = topic_config(
        {}, BrokerConfig({"log.flush.interval.ms": "8", "log.flush.scheduler.interval.ms": "9"})
    )
    assert config.flush_ms == 8


def test_overrides_reach_every_field() -> None:
    config = topic_config(
        {
            "cleanup.policy": "compact,delete",
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "min.cleanable.dirty.ratio": "0.25",
            "flush.messages": "10000",
            "max.compaction.lag.ms": "60000",
            "unclean.leader.election.enable": "true",
        },
        BrokerConfig(),
    )
    assert config.cleanup_compact
    assert config.cleanup_delete
    assert config.message_timestamp_log_append
    assert config.compression_level == 7
    assert config.min_cleanable_dirty_ratio == 0.25
    assert not config.durable
    assert config.segment_ms_max == 60_000
    assert config.unclean_leader_election_enable


def test_a_supported_setting_is_a_field_of_the_topic_config() -> None:
    """Nothing is accepted and then lost: each supported setting changes the resolved config."""
    other_values = {
        "cleanup.policy": "compact",
        "compression.type": "gzip",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.1",
        "compression.lz4.level": "2",
    }
    for name, setting in TOPIC_SETTINGS.items():
        if setting.unsupported or setting.inert:
            continue
        if setting.type is ConfigType.BOOLEAN:
            text = "false" if setting.default else "true"
        else:
            text = other_values.get(name, "2000000" if name == "segment.bytes" else "5")
        assert topic_config({name: text}, BrokerConfig()) != DEFAULT_TOPIC_CONFIG, name


def test_segments_of_tests_may_be_small() -> None:
    assert topic_config({"internal.segment.bytes": "500"}, BrokerConfig()).segment_bytes == 500
    names = [one.setting.name for one in describe_topic({}, BrokerConfig())]
    assert "internal.segment.bytes" not in names
    names = [one.setting.name for one in describe_topic({"internal.segment.bytes": "500"}, BrokerConfig())]
    assert "internal.segment.bytes" in names


def test_compaction_lags_must_leave_room() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        topic_config({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}, BrokerConfig())
    assert str(refusal.value).startswith(
        "min.compaction.lag.ms=10: must be at most max.compaction.lag.ms (9)"
    )
    with pytest.raises(InvalidSetting, match="must be at most"):
        topic_config(
            {"min.compaction.lag.ms": "10"}, BrokerConfig({"log.cleaner.max.compaction.lag.ms": "9"})
        )


def test_stored_settings_that_no_longer_hold_are_left_out_and_named() -> None:
    broker = BrokerConfig({"log.cleaner.max.compaction.lag.ms": "9"})
    stored = {
        "retention.ms": "1000",
        "message.format.version": "3.0",
        "remote.storage.enable": "true",
        "min.compaction.lag.ms": "10",
    }
    config, problems = stored_topic_config(stored, broker)
    assert config.retention_ms == 1000
    assert config.min_compaction_lag_ms == 0
    assert len(problems) == 3
    assert "message.format.version" in problems[0]
    assert described(describe_topic(stored, broker), "retention.ms").value == "1000"
    assert stored_topic_config({"retention.ms": "1000"}, broker) == (config, [])


def test_stored_broker_settings_that_no_longer_hold_are_left_out_and_named() -> None:
    config, problems = BrokerConfig().with_stored_dynamic(
        {"log.retention.ms": "5", "node.id": "7"}, {"num.gone": "1", "message.max.bytes": "6"}
    )
    topic = topic_config({}, config)
    assert (topic.retention_ms, topic.max_message_bytes) == (5, 6)
    assert [problem.split()[0] for problem in problems] == ["node.id", "broker"]


@pytest.mark.parametrize(
    ("static", "text"),
    [
        (
            {"queued.max.request.bytes": "1000"},
            "queued.max.request.bytes=1000: must be at least socket.request.max.bytes (104857600)",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip=0: only with max.connections.per.ip.overrides",
        ),
        (
            {"connections.max.idle.ms": "100"},
            "connection.failed.authentication.delay.ms=100: must be below connections.max.idle.ms (100)",
        ),
        (
            {"replica.fetch.wait.max.ms": "30001"},
            "replica.fetch.wait.max.ms=30001: must be at most replica.socket.timeout.ms (30000)",
        ),
        (
            {"replica.fetch.wait.max.ms": "200", "replica.lag.time.max.ms": "100"},
            "replica.fetch.wait.max.ms=200: must be at most replica.lag.time.max.ms (100)",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": "1048576"},
            "log.cleaner.dedupe.buffer.size=1048576: must be more than 1 MiB for each of the 1 cleaner",
        ),
        ({"log.retention.hours": "0"}, "log.retention.hours=0: expected -1 (for ever), or 1 or more"),
        ({"log.retention.minutes": "0"}, "log.retention.minutes=0: expected -1 (for ever), or 1 or more"),
        ({"log.retention.ms": "0"}, "log.retention.ms=0: not valid"),
        (
            {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"},
            "min.compaction.lag.ms=2: must be at most max.compaction.lag.ms (1)",
        ),
    ],
)
def test_broker_settings_that_contradict_each_other_are_refused(static: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        BrokerConfig(static)
    assert str(refusal.value).startswith(text)


def test_idle_connections_may_be_kept_for_ever() -> None:
    assert BrokerConfig({"connections.max.idle.ms": "-1"}).integer("connections.max.idle.ms") == -1


def test_only_dynamic_settings_change_while_the_broker_runs() -> None:
    config = BrokerConfig({"num.partitions": "3"})
    changed = config.with_dynamic({"log.retention.ms": "1000"}, {})
    assert topic_config({}, changed).retention_ms == 1000
    assert topic_config({}, config).retention_ms == 7 * 24 * HOUR_MS
    assert changed.integer("num.partitions") == 3
    with pytest.raises(
        InvalidSetting, match=r"^num\.partitions cannot be changed while the broker runs; set it in"
    ):
        config.with_dynamic({"num.partitions": "4"}, {})
    with pytest.raises(InvalidSetting, match="is set for each broker by its id, not for the whole cluster"):
        config.with_dynamic({"leader.replication.throttled.rate": "9223372036854775807"}, {})
    config.with_dynamic({}, {"leader.replication.throttled.rate": "9223372036854775807"})


def test_settings_without_effect_are_accepted_with_a_warning() -> None:
    assert BrokerConfig({}).warnings == []
    for count in (8, 16):  # Kafka's default, too: whoever writes it down expects something of it
        (warning,) = BrokerConfig({"num.io.threads": str(count)}).warnings
        assert warning.startswith(f"num.io.threads={count} has no effect: one thread owns the broker's state")
    assert (
        BrokerConfig({"num.network.threads": "9", "queued.max.requests": "100"}).integer(
            "num.network.threads"
        )
        == 9
    )


def test_values_are_read_with_their_type_only() -> None:
    config = BrokerConfig()
    assert config.flag("auto.create.topics.enable") is True
    assert config.texts("log.cleanup.policy") == ("delete",)
    assert config.number("log.cleaner.io.buffer.load.factor") == 0.9
    assert config.text_or_none("advertised.listeners") is None
    with pytest.raises(AssertionError):
        config.integer("auto.create.topics.enable")
    with pytest.raises(AssertionError):
        config.text("advertised.listeners")


def test_describing_a_topic_names_every_place_strongest_first() -> None:
    broker = BrokerConfig(
        {"log.retention.hours": "2"}, {"log.retention.ms": "3000"}, {"log.retention.ms": "4000"}
    )
    one = described(describe_topic({"retention.ms": "5000"}, broker), "retention.ms")
    assert (one.value, one.source, one.read_only) == ("5000", ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    assert places(one) == [
        ("retention.ms", "5000", 1),
        ("log.retention.ms", "4000", 2),
        ("log.retention.ms", "3000", 3),
        ("log.retention.hours", "2", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_describing_tells_the_source_of_each_layer() -> None:
    def source(broker: BrokerConfig) -> int:
        return int(described(describe_topic({}, broker), "retention.ms").source)

    assert source(BrokerConfig()) == 5
    assert source(BrokerConfig({"log.retention.hours": "1"})) == 4
    assert source(BrokerConfig({}, {"log.retention.ms": "1"})) == 3
    assert source(BrokerConfig({}, {}, {"log.retention.ms": "1"})) == 2


def test_a_topic_setting_without_broker_name_has_the_default_source() -> None:
    one = described(describe_topic({}, BrokerConfig()), "remote.storage.enable")
    assert (one.value, one.source, one.synonyms) == ("false", ConfigSource.DEFAULT_CONFIG, ())


def test_describing_a_broker() -> None:
    broker = BrokerConfig({"num.partitions": "3"}, {"log.retention.ms": "1000"})
    settings = describe_broker(broker)
    partitions = described(settings, "num.partitions")
    assert (partitions.value, partitions.source, partitions.read_only) == ("3", 4, True)
    assert places(partitions) == [("num.partitions", "3", 4), ("num.partitions", "1", 5)]
    retention = described(settings, "log.retention.ms")
    assert (retention.value, retention.source, retention.read_only) == ("1000", 3, False)
    unset = described(settings, "advertised.listeners")
    assert (unset.value, unset.source, unset.synonyms) == (None, 5, ())
    shown = {one.setting.name for one in settings}
    assert {name for name, setting in BROKER_SETTINGS.items() if not setting.internal} == shown


def test_describing_the_clusters_defaults_shows_only_those() -> None:
    broker = BrokerConfig(
        {"log.segment.bytes": "2000000"}, {"log.retention.ms": "1000"}, {"log.retention.ms": "2000"}
    )
    (one,) = describe_broker_defaults(broker)
    assert (one.setting.name, one.value, one.source) == ("log.retention.ms", "1000", 3)
    assert places(one) == [("log.retention.ms", "1000", 3)]


def test_equal_overrides_share_one_config() -> None:
    broker = BrokerConfig()
    overrides = {"retention.ms": "1000", "cleanup.policy": "compact"}
    first = topic_config(overrides, broker)
    assert topic_config(dict(reversed(overrides.items())), broker) is first
    assert topic_config({}, broker) is topic_config({}, broker)


def test_the_configs_that_are_remembered_are_bounded() -> None:
    broker = BrokerConfig()
    for retention in range(5_000):
        assert topic_config({"retention.ms": str(retention)}, broker).retention_ms == retention
    assert len(broker._shared) <= 1_000


def test_ten_thousand_topics_share_the_configs_that_are_equal() -> None:
    broker = BrokerConfig()
    resolved = [
        topic_config({"retention.ms": str(number % 100), "cleanup.policy": "compact"}, broker)
        for number in range(10_000)
    ]
    assert len({id(each) for each in resolved}) == 100
