"""How a client logs in (SASL): PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677). Pure: tokens out, challenges in.

An exchange is a generator: it yields what to send, gets what the server says to it, and ends when the login
is complete. It raises LoginFailed where the server is not who it should be.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Generator
from typing import NamedTuple

from ottla.client.errors import InvalidSetting
from ottla.model.config_types import TypedValues

Exchange = Generator[bytes, bytes, None]

_SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_SCRAM_HASHES)

_ITERATIONS_MIN = 4096  # RFC 7677: fewer are a server that wants the password cheaply
_ITERATIONS_MAX = 1_000_000  # half a second of work: more would be a server that wants this client to hang
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_JAAS_MODULES = ("PlainLoginModule", "ScramLoginModule")


class LoginFailed(Exception):
    """With a text and a cure; who knows the address makes an AuthenticationFailed of it."""

    def __init__(self, text: str, cure: str) -> None:
        super().__init__(text)
        self.text = text
        self.cure = cure


class Login(NamedTuple):
    mechanism: str
    begin: Callable[[], Exchange]  # a new exchange for each connection


def login_of(settings: TypedValues) -> Login:
    """What sasl.* says. Raises InvalidSetting."""
    mechanism = settings.text_or_none("sasl.mechanism")
    if mechanism is None:
        raise InvalidSetting(
            "security.protocol says SASL, but sasl.mechanism is not set",
            f"set it to {', '.join(MECHANISMS[:-1])} or {MECHANISMS[-1]}",
        )
    user, password = _credentials(settings)
    if mechanism == "PLAIN":
        return Login(mechanism, lambda: plain(user, password))
    return Login(mechanism, lambda: scram(_SCRAM_HASHES[mechanism], user, password, _new_nonce()))


def _new_nonce() -> str:
    return base64.urlsafe_b64encode(os.urandom(24)).decode()


def _credentials(settings: TypedValues) -> tuple[str, str]:
    user, password = settings.text_or_none("sasl.username"), settings.text_or_none("sasl.password")
    jaas = settings.text_or_none("sasl.jaas.config")
    if jaas is not None:
        if user is not None or password is not None:
            raise InvalidSetting("sasl.jaas.config and sasl.username are given", "give one of them")
        if not any(module in jaas for module in _JAAS_MODULES):
            raise InvalidSetting(
                "sasl.jaas.config names no login module that this client has",
                f"{' or '.join(_JAAS_MODULES)} can be had",
            )
        options = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS_OPTION.findall(jaas)}
        user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        raise InvalidSetting(
            "security.protocol says SASL, but who logs in is not said",
            "set sasl.username and sasl.password, or sasl.jaas.config with both",
        )
    return user, password


def plain(user: str, password: str) -> Exchange:
    yield b"\0".join((b"", user.encode(), password.encode()))


def scram(hash_name: str, user: str, password: str, nonce: str) -> Exchange:
    """The server proves in the end that it knows the password too."""
    import hashlib  # with hmac 3 ms, which only a login should pay
    import hmac

    name = user.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = (yield f"n,,{client_first}".encode()).decode(errors="replace")
    said = _attributes(server_first)
    try:
        salt, iterations = base64.b64decode(said["s"], validate=True), int(said["i"])
        server_nonce = said["r"]
    except (KeyError, ValueError):
        raise _not_scram(server_first) from None
    if not server_nonce.startswith(nonce) or not _ITERATIONS_MIN <= iterations <= _ITERATIONS_MAX:
        raise _not_scram(server_first)

    def keyed(key: bytes, text: str | bytes) -> bytes:
        return hmac.digest(key, text.encode() if isinstance(text, str) else text, hash_name)

    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    client_key = keyed(salted, "Client Key")
    unproven = f"c=biws,r={server_nonce}"  # biws: the "n,," from above
    whole = f"{client_first},{server_first},{unproven}"
    signature = keyed(hashlib.new(hash_name, client_key).digest(), whole)
    proof = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
    server_final = (yield f"{unproven},p={base64.b64encode(proof).decode()}".encode()).decode(
        errors="replace"
    )
    expected = base64.b64encode(keyed(keyed(salted, "Server Key"), whole)).decode()
    if not hmac.compare_digest(_attributes(server_final).get("v", "").encode(), expected.encode()):
        raise LoginFailed(
            "the server took the login, but did not prove that it knows the password",
            "this may not be the broker that you mean; check the address",
        )


def _attributes(message: str) -> dict[str, str]:
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}


def _not_scram(message: str) -> LoginFailed:
    return LoginFailed(
        f"the server's answer is no SCRAM that can be trusted: {message[:100]!r}", "check the address"
    )
