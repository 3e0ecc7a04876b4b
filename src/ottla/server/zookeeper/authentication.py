"""Who a ZooKeeper client says it is: auth packets with the schemes `digest` and `ip`, and SASL DIGEST-MD5."""

from __future__ import annotations

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
    import base64
    import hashlib  # brings OpenSSL with it, which nobody else needs

    digest = base64.b64encode(hashlib.sha1(auth, usedforsecurity=False).digest()).decode()
    return Identity("digest", f"{user}:{digest}")


def add_identity(client: Client, identity: Identity) -> None:
    if identity not in client.identities:
        client.identities = (*client.identities, identity)


class SaslExchange:
    """The steps of one client: an empty token gets a challenge, the next one is what it makes of that."""

    def __init__(self, passwords: dict[str, str]) -> None:
        import secrets

        from ottla.security.digest_md5 import DigestMd5

        self._passwords = passwords
        # Both names are fixed in ZooKeeper's clients.
        self._mechanism = DigestMd5("zookeeper", "zk-sasl-md5", secrets.token_urlsafe(24))
        self._is_challenged = False

    def step(self, client: Client, token: bytes) -> bytes | None:
        """What to answer; None: the exchange has failed."""
        if not self._is_challenged:
            self._is_challenged = True
            return self._mechanism.challenge()
        proven = self._mechanism.verify(token, self._passwords)
        if proven is None:
            return None
        add_identity(client, Identity("sasl", proven.user))
        return proven.token
