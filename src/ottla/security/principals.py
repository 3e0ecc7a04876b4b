"""Who a connection speaks for."""

from __future__ import annotations

from ottla.model.values import NamedTuple

USER = "User"


class Principal(NamedTuple):
    type: str  # 'User' for every login that Kafka has
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Whoever came through a listener that asks for no login."""


def parse_principal(text: str) -> Principal:
    """Type:name, where the name may hold further colons (as in a certificate's). Raises ValueError."""
    kind, separator, name = text.partition(":")
    if not kind or not separator or not name:
        raise ValueError(f"{text!r} is not a principal: Type:name is expected, as in User:alice")
    return Principal(kind, name)
