"""What holds for a broker and, through it, for a topic, and where each value comes from.

A value of a topic is taken from the topic's own settings, else from the broker's dynamic ones, the cluster's
dynamic default, the broker's start-up file, and last the default in the table. Nothing here reads files or
changes state; a changed setting is a new `BrokerConfig` or `TopicConfig`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config_types import (
    ConfigSource,
    InvalidSetting,
    Setting,
    SettingTable,
    Synonym,
    TypedValues,
    Value,
    format_value,
    nearest,
    parse,
)
from ottla.model.limits import MIB
from ottla.model.refused_settings import REFUSED_PREFIXES
from ottla.model.topic_config import TopicConfig
from ottla.model.topic_settings import TOPIC_SETTINGS
from ottla.model.values import NamedTuple

_TOPIC_CONFIGS_SHARED_MAX = 1_000  # distinct sets of overrides that are remembered; people use a handful


def setting_named(name: str, table: SettingTable) -> Setting:
    """The setting of that name. Raises InvalidSetting with the reason or the nearest name that exists."""
    setting = table.get(name)
    if setting is not None:
        return setting
    scope = "topic" if table is TOPIC_SETTINGS else "broker"
    for prefix, reason in REFUSED_PREFIXES.items():
        if name.startswith(prefix):
            raise InvalidSetting(f"{scope} setting {name} cannot be used: {reason}")
    raise InvalidSetting(f"{scope} setting {name} does not exist{_suggestion(name, table)}")


def _suggestion(name: str, table: SettingTable) -> str:
    if table is TOPIC_SETTINGS:
        for topic_setting in TOPIC_SETTINGS.values():
            if any(synonym.name == name for synonym in topic_setting.synonyms):
                return f"; topics call it {topic_setting.name}"
    elif name in TOPIC_SETTINGS and TOPIC_SETTINGS[name].synonyms:
        return f"; brokers call it {TOPIC_SETTINGS[name].synonyms[0].name}"
    near = nearest(name, table)
    return f"; did you mean {near}?" if near else ""


class SourcedValue(NamedTuple):
    """One place that gives a setting a value; DescribeConfigs calls it a synonym."""

    name: str
    value: str | None  # None: a secret
    source: ConfigSource


class BrokerConfig(TypedValues):
    """The settings of one broker, resolved and checked. Immutable; `with_dynamic` gives the next one."""

    __slots__ = ("_layers", "_shared", "_topic_defaults", "warnings")

    def __init__(
        self,
        static: Mapping[str, str] | None = None,
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> None:
        """From texts by setting name: start-up file, cluster-wide dynamic, this broker's dynamic.

        Raises InvalidSetting.
        """
        for name in dynamic_default or ():
            check_dynamic(name, cluster_wide=True)
        for name in dynamic_broker or ():
            check_dynamic(name, cluster_wide=False)
        # What was set, strongest first.
        self._layers = (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, dict(dynamic_broker or {})),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dict(dynamic_default or {})),
            (ConfigSource.STATIC_BROKER_CONFIG, dict(static or {})),
        )
        values: dict[str, Value] = {name: setting.default for name, setting in BROKER_SETTINGS.items()}
        self.warnings: list[str] = []  # settings that were taken and change nothing, one text each
        for _, texts in reversed(self._layers):
            for name, text in texts.items():
                setting = setting_named(name, BROKER_SETTINGS)
                values[name] = parse(setting, text)
                if setting.inert:
                    self.warnings.append(f"{name}={text} has no effect: {setting.inert}")
        super().__init__(values)
        _check_broker(self)
        self._topic_defaults = {
            name: self._topic_default(setting) for name, setting in TOPIC_SETTINGS.items()
        }
        _check_topic(TypedValues(self._topic_defaults))
        self._shared: dict[frozenset[tuple[str, str]], TopicConfig] = {}

    def with_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> BrokerConfig:
        """The same start-up file under other dynamic settings. Raises InvalidSetting."""
        return BrokerConfig(self._layers[-1][1], dynamic_default, dynamic_broker)

    def with_stored_dynamic(
        self, dynamic_default: Mapping[str, str], dynamic_broker: Mapping[str, str]
    ) -> tuple[BrokerConfig, list[str]]:
        """As `with_dynamic` for settings from the store: what does not hold is left out, and said why."""
        config, problems = self.with_dynamic({}, {}), []
        default: dict[str, str] = {}
        broker: dict[str, str] = {}
        for stored, usable in ((dynamic_default, default), (dynamic_broker, broker)):
            for name, text in stored.items():
                usable[name] = text
                try:
                    config = self.with_dynamic(default, broker)
                except InvalidSetting as error:
                    problems.append(str(error))
                    del usable[name]
        return config, problems

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """A topic's settings; equal overrides share one instance. Raises InvalidSetting."""
        key = frozenset(overrides.items())
        config = self._shared.get(key)
        if config is None:
            config = TopicConfig.from_values(self.topic_values(overrides))
            if len(self._shared) >= _TOPIC_CONFIGS_SHARED_MAX:
                self._shared.clear()
            self._shared[key] = config
        return config

    def topic_values(self, overrides: Mapping[str, str]) -> TypedValues:
        """Every topic setting's value under `overrides`, checked. Raises InvalidSetting."""
        values = dict(self._topic_defaults)
        for name, text in overrides.items():
            values[name] = parse(setting_named(name, TOPIC_SETTINGS), text)
        typed = TypedValues(values)
        _check_topic(typed)
        return typed

    def usable_overrides(self, stored: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Of settings that were accepted once, those that still hold, and why the others do not.

        Another version, Kafka itself or a changed default of the broker may have left what is refused today;
        that must not keep a broker from starting.
        """
        usable: dict[str, str] = {}
        problems = []
        for name, text in stored.items():
            try:
                self.topic_values({**usable, name: text})
            except InvalidSetting as error:
                problems.append(str(error))
            else:
                usable[name] = text
        return usable, problems

    def sources(self, names: Iterable[str]) -> Iterator[SourcedValue]:
        """Every place that gives one of `names` a value, strongest first, the table's default last."""
        names = tuple(names)
        for source, texts in self._layers:
            for name in names:
                if name in texts:
                    yield SourcedValue(name, texts[name], source)
        for name in names:
            default = format_value(BROKER_SETTINGS[name].default)
            if default is not None:
                yield SourcedValue(name, default, ConfigSource.DEFAULT_CONFIG)

    def set_names(self, source: ConfigSource) -> tuple[str, ...]:
        """The names that `source` sets."""
        return tuple(next(texts for layer, texts in self._layers if layer is source))

    def _topic_default(self, setting: Setting) -> Value:
        """What a topic gets that does not set `setting`; layers come before the order of synonyms."""
        for _, texts in self._layers:
            for synonym in setting.synonyms:
                if synonym.name in texts and self.value(synonym.name) is not None:
                    return _scaled(self.value(synonym.name), synonym)
        return setting.default


def _scaled(value: Value, synonym: Synonym) -> Value:
    if synonym.factor == 1:
        return value
    assert isinstance(value, int)
    return value * synonym.factor if value >= 0 else -1  # -1 hours is for ever, as -1 ms


def check_dynamic(name: str, *, cluster_wide: bool) -> None:
    """Raises InvalidSetting when a running broker, or the whole cluster, does not take a new `name`."""
    setting = setting_named(name, BROKER_SETTINGS)
    if setting.update_mode == "read-only":
        raise InvalidSetting(
            f"{name} cannot be changed while the broker runs; set it in the broker's properties file and "
            "restart"
        )
    if cluster_wide and setting.update_mode == "per-broker":
        raise InvalidSetting(f"{name} is set for each broker by its id, not for the whole cluster")


def _check_broker(config: BrokerConfig) -> None:
    """Rules between broker settings, as Kafka has them."""

    def require(condition: bool, text: str) -> None:
        if not condition:
            raise InvalidSetting(text)

    request_bytes, queued_bytes = (
        config.integer("socket.request.max.bytes"),
        config.integer("queued.max.request.bytes"),
    )
    require(
        queued_bytes <= 0 or queued_bytes >= request_bytes,
        f"queued.max.request.bytes={queued_bytes}: must be at least socket.request.max.bytes "
        f"({request_bytes}), or no request of that size could ever arrive",
    )
    require(
        config.integer("max.connections.per.ip") > 0 or config.text("max.connections.per.ip.overrides") != "",
        "max.connections.per.ip=0: only with max.connections.per.ip.overrides, or nobody could connect",
    )
    idle_ms, delay_ms = (
        config.integer("connections.max.idle.ms"),
        config.integer("connection.failed.authentication.delay.ms"),
    )
    require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms}: must be below connections.max.idle.ms "
        f"({idle_ms})",
    )
    wait_ms = config.integer("replica.fetch.wait.max.ms")
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        require(
            wait_ms <= config.integer(name),
            f"replica.fetch.wait.max.ms={wait_ms}: must be at most {name} ({config.integer(name)})",
        )
    threads, dedupe_bytes = (
        config.integer("log.cleaner.threads"),
        config.integer("log.cleaner.dedupe.buffer.size"),
    )
    require(
        dedupe_bytes > threads * MIB,
        f"log.cleaner.dedupe.buffer.size={dedupe_bytes}: must be more than 1 MiB for each of the {threads} "
        "cleaner threads",
    )
    for family in ("retention.minutes", "retention.hours"):
        value = config.integer_or_none(f"log.{family}")
        require(value != 0, f"log.{family}=0: expected -1 (for ever), or 1 or more")


def _check_topic(values: TypedValues) -> None:
    """Rules between topic settings, as Kafka has them."""
    least, most = values.integer("min.compaction.lag.ms"), values.integer("max.compaction.lag.ms")
    if least > most:
        raise InvalidSetting(
            f"min.compaction.lag.ms={least}: must be at most max.compaction.lag.ms ({most}), or no record "
            "could be compacted"
        )


def topic_config(overrides: Mapping[str, str], broker: BrokerConfig) -> TopicConfig:
    """A topic's settings under those of its broker. Raises InvalidSetting."""
    return broker.topic_config(overrides)


def stored_topic_config(overrides: Mapping[str, str], broker: BrokerConfig) -> tuple[TopicConfig, list[str]]:
    """As `topic_config` for overrides from the store: what does not hold is left out, and said why."""
    try:
        return broker.topic_config(overrides), []
    except InvalidSetting:
        usable, problems = broker.usable_overrides(overrides)
        return broker.topic_config(usable), problems


DEFAULT_TOPIC_CONFIG = topic_config({}, BrokerConfig())
"""What a topic has when neither it nor its broker sets anything."""
