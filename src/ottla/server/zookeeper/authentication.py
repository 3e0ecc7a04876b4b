"""Who a ZooKeeper client says it is: auth packets with the schemes `digest` and `ip`."""

from __future__ import annotations

import base64
import hashlib

from ottla.coordination.acls import Identity
from ottla.coordination.sessions import Client


def identity_of(scheme: str, auth: bytes, address: str) -> Identity | None:
    """The identity that an auth packet proves; None: it proves nothing."""
    match scheme:
        case "digest":
            return _digest_identity(auth)
        case "ip":
            return Identity("ip", address)
    return None


def _digest_identity(auth: bytes) -> Identity | None:
    """Knowing the password is all there is to it: whoever has the same text has the same identity."""
    try:
        user, separator, _ = auth.decode().partition(":")
    except UnicodeDecodeError:
        return None
    if not separator:
        return None
    digest = base64.b64encode(hashlib.sha1(auth, usedforsecurity=False).digest()).decode()
    return Identity("digest", f"{user}:{digest}")


def add_identity(client: Client, identity: Identity) -> None:
    if identity not in client.identities:
        client.identities.append(identity)
