"""Where brokers are: `host:port` as users write it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.errors import InvalidSetting

PORT_DEFAULT = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> tuple[Address, ...]:
    """The addresses in `a:9092,b:9092`, or in several such texts; each once, in order."""
    texts = [bootstrap] if isinstance(bootstrap, str) else list(bootstrap)
    parts = [part.strip() for text in texts for part in text.split(",")]
    addresses = tuple(dict.fromkeys(parse_address(part) for part in parts if part))
    if not addresses:
        raise InvalidSetting("bootstrap.servers is empty", "name at least one broker as host:port")
    return addresses


def parse_address(text: str) -> Address:
    """`host`, `host:port`, `[::1]:port`, or one of these behind a security protocol's `://`."""
    protocol, separator, rest = text.rpartition("://")
    if separator and protocol.upper() != "PLAINTEXT":
        raise InvalidSetting(f"{text!r} is no plaintext broker address", "give host:port")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    elif rest.count(":") > 1:  # a bare IPv6 address
        host, port = rest, ""
    else:
        host, _, port = rest.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise InvalidSetting(f"{text!r} is no broker address", "give host:port, such as localhost:9092")
    return Address(host, int(port) if port else PORT_DEFAULT)
