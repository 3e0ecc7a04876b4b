"""SASL DIGEST-MD5 (RFC 2831), the server's side, as ZooKeeper's clients use it. Pure: the nonce comes in.

The mechanism is old (RFC 6331 tells why not to choose it); it is here because ZooKeeper clients speak no
other one with passwords.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from ottla.model.values import NamedTuple

_PAIR = re.compile(rb'\s*([a-z-]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,"\s]*)\s*(?:,|\Z)')
_RESPONSE_BYTES_MAX = 4096  # RFC 2831, 2.1.2


class Proven(NamedTuple):
    user: str
    token: bytes  # for the client, as the proof that we know the password too


class DigestMd5:
    """One exchange: a challenge, and what the client makes of it."""

    def __init__(self, service: str, host: str, nonce: str) -> None:
        self._uri = f"{service}/{host}"
        self._realm = host
        self._nonce = nonce

    def challenge(self) -> bytes:
        return (
            f'realm="{self._realm}",nonce="{self._nonce}",qop="auth",charset=utf-8,algorithm=md5-sess'
        ).encode()

    def verify(self, response: bytes, passwords: dict[str, str]) -> Proven | None:
        """None: it proves nothing."""
        fields = _fields(response)
        user = fields.get("username", "")
        password = passwords.get(user)
        expected = {"nonce": self._nonce, "nc": "00000001", "digest-uri": self._uri}
        if password is None or any(fields.get(name) != value for name, value in expected.items()):
            return None
        if fields.get("qop", "auth") != "auth" or not fields.get("cnonce"):
            return None
        wanted = _answer(fields, password, "AUTHENTICATE")
        if not hmac.compare_digest(wanted.encode(), fields.get("response", "").encode()):
            return None
        return Proven(user, f"rspauth={_answer(fields, password, '')}".encode())


def _answer(fields: dict[str, str], password: str, method: str) -> str:
    """RFC 2831, 2.1.2.1: what only who knows the password can say."""
    user, realm = fields["username"], fields.get("realm", "")
    nonce, cnonce = fields["nonce"], fields["cnonce"]
    session = hashlib.md5(f"{user}:{realm}:{password}".encode(), usedforsecurity=False).digest()
    session += f":{nonce}:{cnonce}".encode()
    if fields.get("authzid"):
        session += f":{fields['authzid']}".encode()
    first, second = _hex(session), _hex(f"{method}:{fields['digest-uri']}".encode())
    return _hex(f"{first}:{nonce}:{fields['nc']}:{cnonce}:auth:{second}".encode())


def _hex(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _fields(response: bytes) -> dict[str, str]:
    """Names and values; empty when it is nothing of the kind."""
    fields: dict[str, str] = {}
    position = 0
    if len(response) > _RESPONSE_BYTES_MAX:
        return {}
    while position < len(response):
        match = _PAIR.match(response, position)
        if match is None:
            return {}
        name, value = match[1].decode(), match[2]
        if value.startswith(b'"'):
            value = re.sub(rb"\\(.)", rb"\1", value[1:-1], flags=re.DOTALL)
        try:
            fields[name] = value.decode()
        except UnicodeDecodeError:
            return {}
        position = match.end()
    return fields
