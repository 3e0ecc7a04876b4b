"""The ZooKeeper port's settings with their types and units; their names on the outside are `zoo.cfg`'s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.model.config_types import InvalidSetting, TypedValues, parse
from ottla.model.listeners import Listener
from ottla.model.values import NamedTuple
from ottla.model.zookeeper_settings import NO_PORT, WORDS, ZOOKEEPER_SETTINGS

LISTENER_NAME = "ZOOKEEPER"
_TICKS_MIN, _TICKS_MAX = 2, 20


class ZooKeeperConfig(NamedTuple):
    listener: Listener | None  # None: there is no port
    data_dir: str
    tick_ms: int
    session_timeout_ms_min: int
    session_timeout_ms_max: int
    connections_max: int  # 0: only limited by what the process can have
    connections_per_address_max: int  # 0: not limited
    request_bytes_max: int
    words: frozenset[str]  # four-letter words that are answered
    sasl_passwords: dict[str, str]  # by user; empty: SASL is refused

    def __repr__(self) -> str:
        """Without the passwords."""
        shown = [f"{name}={getattr(self, name)!r}" for name in self._fields if name != "sasl_passwords"]
        return f"ZooKeeperConfig({', '.join(shown)})"


def knows_all(names: Iterable[str]) -> bool:
    """Whether all of `names` are settings of the port, so that `zookeeper_config_of` can read them."""
    return {setting.name for setting in ZOOKEEPER_SETTINGS}.issuperset(names)


def zookeeper_config_of(texts: Mapping[str, str], data_dir: str) -> ZooKeeperConfig:
    """From the port's own settings, without loading those of a broker. Raises InvalidSetting."""
    values = {
        setting.name: parse(setting, texts[setting.name]) if setting.name in texts else setting.default
        for setting in ZOOKEEPER_SETTINGS
    }
    return zookeeper_config(TypedValues(values), data_dir)


def zookeeper_config(config: TypedValues, data_dir: str) -> ZooKeeperConfig:
    """Raises InvalidSetting."""
    tick_ms = config.integer("tickTime")
    shortest_ms = config.integer_or_none("minSessionTimeout") or _TICKS_MIN * tick_ms
    longest_ms = config.integer_or_none("maxSessionTimeout") or _TICKS_MAX * tick_ms
    if shortest_ms > longest_ms:
        raise InvalidSetting(
            f"minSessionTimeout={shortest_ms}: is more than maxSessionTimeout, which is {longest_ms}"
        )
    return ZooKeeperConfig(
        listener=_listener(config),
        data_dir=data_dir,
        tick_ms=tick_ms,
        session_timeout_ms_min=shortest_ms,
        session_timeout_ms_max=longest_ms,
        connections_max=config.integer("maxCnxns"),
        connections_per_address_max=config.integer("maxClientCnxns"),
        request_bytes_max=config.integer("jute.maxbuffer"),
        words=_words(config.texts("4lw.commands.whitelist")),
        sasl_passwords=_passwords(config.text_or_none("ottla.zookeeper.sasl.users") or ""),
    )


def _listener(config: TypedValues) -> Listener | None:
    port = config.integer("clientPort")
    if port == NO_PORT:
        return None
    return Listener(LISTENER_NAME, config.text("clientPortAddress"), port, "PLAINTEXT")


def _passwords(text: str) -> dict[str, str]:
    passwords = {}
    for item in filter(None, (item.strip() for item in text.split(","))):
        user, separator, password = item.partition(":")
        if not user or not separator or not password:
            raise InvalidSetting(
                "ottla.zookeeper.sasl.users: not valid, expected user:password, comma-separated"
            )
        passwords[user] = password
    return passwords


def _words(given: tuple[str, ...]) -> frozenset[str]:
    if "*" in given:
        return WORDS
    unknown = sorted(frozenset(given) - WORDS)
    if unknown:
        raise InvalidSetting(
            f"4lw.commands.whitelist: {', '.join(unknown)} not known, expected some of "
            f"{', '.join(sorted(WORDS))}, or *"
        )
    return frozenset(given)
