"""Who may do what to a znode: ZooKeeper's access lists, their schemes and their bytes in our files. Pure.

Schemes: world (everybody), auth (whoever asks, resolved when the list is set), digest, ip, sasl, and super,
an identity that no list can stop. How an identity was proven is not known here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from ottla.model.limits import ZNODE_ACL_BYTES_MAX
from ottla.model.values import NamedTuple

if TYPE_CHECKING:
    import ipaddress  # at run time when the first list by address is met


class Perms:
    """ZooKeeper's permissions, bits of the number on its wire."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class Identity(NamedTuple):
    """Somebody, as one scheme knows them."""

    scheme: str
    id: str


class Acl(NamedTuple):
    """One line of an access list."""

    perms: int
    scheme: str
    id: str


AccessList = tuple[Acl, ...]

ANYONE = Identity("world", "anyone")
SUPER = Identity("super", "")
OPEN_ACL: AccessList = (Acl(Perms.ALL, *ANYONE),)
READ_ACL: AccessList = (Acl(Perms.READ, *ANYONE),)

_KNOWN_MAX = 256
"""Lists and addresses remembered: few are in use at a time, and a client may make each of them large."""

_PROVEN_SCHEMES = ("digest", "sasl")
"""Identities that `auth` stands for: an address proves nothing about a person."""


def permits(acl: AccessList, permission: int, identities: Sequence[Identity] | None) -> bool:
    """Whether one of `identities` has `permission` (any bit of it). None: the process itself, which may."""
    if acl is OPEN_ACL or identities is None:
        return True
    for identity in identities:
        if identity.scheme == SUPER.scheme:
            return True
    for perms, scheme, name in acl:
        if not perms & permission:
            continue
        if (scheme, name) == ANYONE:
            return True
        for identity in identities:
            if identity.scheme == scheme and _matches(scheme, identity.id, name):
                return True
    return False


def _matches(scheme: str, found: str, wanted: str) -> bool:
    if scheme == "ip":
        return _address_matches(found, wanted)
    return found == wanted or (scheme == "sasl" and found == "super")


@lru_cache(_KNOWN_MAX)
def _address_matches(address: str, expression: str) -> bool:
    import ipaddress

    network = _network(expression)
    try:
        return network is not None and ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _network(expression: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """`address` or `address/bits`; None when it is neither."""
    _, slash, bits = expression.partition("/")
    if slash and not (bits.isascii() and bits.isdigit()):
        return None  # a netmask in dots, which ZooKeeper does not know
    import ipaddress

    try:
        return ipaddress.ip_network(expression, strict=False)
    except ValueError:
        return None


def resolve(acl: Sequence[Acl], identities: Sequence[Identity] | None) -> AccessList | None:
    """The list as it is kept: each line once, `auth` replaced by who asks. None when it is not valid."""
    if acl is OPEN_ACL:
        return OPEN_ACL
    resolved: list[Acl] = []
    for line in dict.fromkeys(acl):
        if line.scheme == "auth":
            proven = [one for one in identities or () if one.scheme in _PROVEN_SCHEMES]
            if not proven:
                return None
            resolved += (Acl(line.perms, *identity) for identity in proven)
        elif _is_valid(line.scheme, line.id):
            resolved.append(line)
        else:
            return None
    if not resolved or len(encoded := encode_acl(tuple(resolved))) > ZNODE_ACL_BYTES_MAX:
        return None
    return decode_acl(encoded)


def _is_valid(scheme: str, name: str) -> bool:
    if scheme == "world":
        return name == ANYONE.id
    if scheme == "digest":
        return name.count(":") == 1 and not name.endswith(":")
    if scheme == "ip":
        return _network(name) is not None
    return scheme == "sasl" and bool(name)


def masked(acl: AccessList) -> AccessList:
    """The list without the digests of passwords, for readers who may not change it."""
    return tuple(
        line._replace(id=line.id.partition(":")[0] + ":x") if line.scheme == "digest" else line
        for line in acl
    )


def user_of(identity: Identity) -> str:
    """The name to show: of a digest without the digest; of a scheme without users nothing."""
    if identity.scheme == "digest":
        return identity.id.partition(":")[0]
    return identity.id if identity.scheme in ("ip", "sasl") else ""


# Bytes

_LINE = struct.Struct(">iII")  # permissions, bytes of scheme and id


@lru_cache(_KNOWN_MAX)
def encode_acl(acl: AccessList) -> bytes:
    """Empty for OPEN_ACL, which nearly every node has."""
    if acl == OPEN_ACL:
        return b""
    parts: list[bytes] = []
    for perms, scheme, name in acl:
        scheme_bytes, name_bytes = scheme.encode(), name.encode()
        parts += (_LINE.pack(perms, len(scheme_bytes), len(name_bytes)), scheme_bytes, name_bytes)
    return b"".join(parts)


@lru_cache(_KNOWN_MAX)
def decode_acl(data: bytes) -> AccessList:
    """One object for equal lists, so that a million nodes can share it. ValueError, struct.error."""
    if not data:
        return OPEN_ACL
    lines: list[Acl] = []
    position = 0
    while position < len(data):
        perms, scheme_bytes, name_bytes = _LINE.unpack_from(data, position)
        scheme_end = position + _LINE.size + scheme_bytes
        scheme = data[position + _LINE.size : scheme_end].decode()
        position = scheme_end + name_bytes
        lines.append(Acl(perms, scheme, data[scheme_end:position].decode()))
    return tuple(lines)
