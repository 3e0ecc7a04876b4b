"""Listeners: the named addresses where a broker is reached. Reads and checks texts; opens no socket."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ottla.model.config_types import InvalidSetting
from ottla.model.values import NamedTuple

_LISTENER = (
    r"(?P<name>[A-Za-z0-9_-]+)://"
    r"(\[(?P<ipv6>[0-9a-fA-F:.]*(%[0-9A-Za-z._-]+)?)\]|(?P<host>[0-9A-Za-z._-]*)):(?P<port>[0-9]{1,5})\Z"
)
_EXAMPLE = "NAME://host:port, as in PLAINTEXT://127.0.0.1:9092"
EVERY_INTERFACE = ("", "0.0.0.0", "::")  # hosts to bind to, and not to advertise


class Listener(NamedTuple):
    name: str  # in capitals, as Kafka compares it
    host: str  # empty: every interface (bound), or this machine's own name (advertised)
    port: int  # 0: the operating system chooses one
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str, setting: str = "listener.security.protocol.map") -> dict[str, str]:
    """NAME:PROTOCOL,… as a mapping. Raises InvalidSetting."""
    from ottla.model.network_settings import SECURITY_PROTOCOLS

    protocols: dict[str, str] = {}
    for item in _items(text):
        name, separator, protocol = (part.strip().upper() for part in item.partition(":"))
        if not name or not separator or protocol not in SECURITY_PROTOCOLS:
            raise InvalidSetting(
                f"{setting}: {item!r} is not valid, expected NAME:PROTOCOL with one of "
                f"{', '.join(SECURITY_PROTOCOLS)}"
            )
        if protocols.get(name, protocol) != protocol:
            raise InvalidSetting(f"{setting}: {name} has two protocols, {protocols[name]} and {protocol}")
        protocols[name] = protocol
    return protocols


def parse_listeners(
    text: str, protocols: Mapping[str, str], setting: str, *, distinct_ports: bool = True
) -> tuple[Listener, ...]:
    """NAME://host:port,… in order. Raises InvalidSetting for a wrong form, a name or a port used twice."""
    listeners = tuple(_parse_listener(item, protocols, setting) for item in _items(text))
    if not listeners:
        raise InvalidSetting(f"{setting}: names no listener, expected {_EXAMPLE}")
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSetting(f"{setting}={text}: {name} is there twice; each listener needs its own name")
    if distinct_ports:
        _check_ports(listeners, text, setting)
    return listeners


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _parse_listener(item: str, protocols: Mapping[str, str], setting: str) -> Listener:
    import re

    match = re.match(_LISTENER, item)
    if match is None or int(match["port"]) > 65535:
        raise InvalidSetting(f"{setting}: {item!r} is not valid, expected {_EXAMPLE}")
    name = match["name"].upper()
    if name not in protocols:
        raise InvalidSetting(
            f"{setting}: listener {name} has no security protocol; add {name}:PLAINTEXT to "
            "listener.security.protocol.map"
        )
    return Listener(name, match["ipv6"] or match["host"] or "", int(match["port"]), protocols[name])


def _check_ports(listeners: tuple[Listener, ...], text: str, setting: str) -> None:
    """Each port once; one IPv4 and one IPv6 address may share theirs (KIP-797)."""
    by_port = defaultdict(list)
    for listener in listeners:
        if listener.port != 0:
            by_port[listener.port].append(listener)
    for port, sharing in by_port.items():
        versions = [_address_version(listener.host) for listener in sharing]
        if len(sharing) > 1 and sorted(versions) != [4, 6]:
            raise InvalidSetting(
                f"{setting}={text}: port {port} is there {len(sharing)} times; "
                "each listener needs its own port"
            )


def _address_version(host: str) -> int:
    import ipaddress

    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0
