"""The ZooKeeper port's settings with their types and units; their names on the outside are `zoo.cfg`'s."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ottla.model.broker_config import BrokerConfig
from ottla.model.config_types import InvalidSetting
from ottla.model.listeners import Listener
from ottla.model.zookeeper_settings import NO_PORT, WORDS

LISTENER_NAME = "ZOOKEEPER"
_TICKS_MIN, _TICKS_MAX = 2, 20


@dataclass(slots=True, frozen=True)
class ZooKeeperConfig:
    listener: Listener | None  # None: there is no port
    data_dir: str
    tick_ms: int
    session_timeout_ms_min: int
    session_timeout_ms_max: int
    connections_max: int  # 0: only limited by what the process can have
    connections_per_address_max: int  # 0: not limited
    request_bytes_max: int
    words: frozenset[str]  # four-letter words that are answered
    sasl_passwords: dict[str, str] = field(repr=False)  # by user; empty: SASL is refused


def zookeeper_config(config: BrokerConfig, data_dir: Path) -> ZooKeeperConfig:
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
        data_dir=str(data_dir),
        tick_ms=tick_ms,
        session_timeout_ms_min=shortest_ms,
        session_timeout_ms_max=longest_ms,
        connections_max=config.integer("maxCnxns"),
        connections_per_address_max=config.integer("maxClientCnxns"),
        request_bytes_max=config.integer("jute.maxbuffer"),
        words=_words(config.texts("4lw.commands.whitelist")),
        sasl_passwords=_passwords(config.text_or_none("ottla.zookeeper.sasl.users") or ""),
    )


def _listener(config: BrokerConfig) -> Listener | None:
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
