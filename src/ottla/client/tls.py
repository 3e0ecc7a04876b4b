"""Encrypted connections (TLS): what ssl.* says as a context of Python's `ssl`, and its sockets for `network`.

Imported only by clients that use it: loading OpenSSL takes 10 ms.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ottla.client.addresses import Address
from ottla.client.errors import ConnectionFailed, InvalidSetting, TlsFailed
from ottla.model.config_types import TypedValues

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TRUST_CURE = (
    "set ssl.truststore.location to a PEM file with the certificate of the authority that signed the broker's"
)
_PEM = b"-----BEGIN"


class TlsSocket(ssl.SSLSocket):
    """Behaves as a plain socket that does not block: what OpenSSL has to wait for is a BlockingIOError."""

    def sendmsg(self, buffers: Iterable[Any], *_: Any) -> int:  # type: ignore[override]
        """Sends of the first buffer, as much as goes."""
        try:
            return self.send(next(iter(buffers)))
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def recv(self, size: int = 1024, flags: int = 0) -> bytes:
        try:
            return super().recv(size, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None

    def recv_into(self, buffer: Any, size: int | None = None, flags: int = 0) -> int:
        try:
            return super().recv_into(buffer, size, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None


def context_of(settings: TypedValues) -> ssl.SSLContext:
    """Raises InvalidSetting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sslsocket_class = TlsSocket
    wanted = [_VERSIONS[name] for name in settings.texts("ssl.enabled.protocols")]
    context.minimum_version, context.maximum_version = min(wanted), max(wanted)
    _trust(context, settings)
    _identify(context, settings)
    if not settings.text_or_none("ssl.endpoint.identification.algorithm"):
        context.check_hostname = False
    return context


def _trust(context: ssl.SSLContext, settings: TypedValues) -> None:
    """Whom to believe; without a word about it, whom the operating system believes."""
    location, text = (
        settings.text_or_none("ssl.truststore.location"),
        settings.text_or_none("ssl.truststore.certificates"),
    )
    if location is not None:
        text = _pem_file("ssl.truststore.location", location)
    if text is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidSetting(f"the certificates of ssl.truststore cannot be read: {error}") from None


def _identify(context: ssl.SSLContext, settings: TypedValues) -> None:
    """Who this client is, where brokers ask for it (mTLS)."""
    location = settings.text_or_none("ssl.keystore.location")
    chain, key = (
        settings.text_or_none("ssl.keystore.certificate.chain"),
        settings.text_or_none("ssl.keystore.key"),
    )
    if (chain is None) != (key is None):
        raise InvalidSetting(
            "ssl.keystore.certificate.chain and ssl.keystore.key belong together", "give both, or neither"
        )
    if location is not None:
        text = _pem_file("ssl.keystore.location", location)
    elif chain is not None and key is not None:
        text = f"{key}\n{chain}"
    else:
        return
    password = settings.text_or_none("ssl.key.password")
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:  # readable for its owner only
        file.write(text)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=password or "")
        except (ssl.SSLError, ValueError) as error:
            raise InvalidSetting(
                f"the key and certificate of ssl.keystore cannot be used: {error}",
                "give a PEM file with the key and its certificates, and ssl.key.password if the key has one",
            ) from None


def _pem_file(name: str, location: str) -> str:
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise InvalidSetting(f"{name}={location} cannot be read: {error.strerror}") from None
    if _PEM not in data:
        raise InvalidSetting(
            f"{name}={location} is no PEM file",
            "make one of a Java keystore: keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12",
        )
    return data.decode(errors="replace")


def failure(address: Address, error: ssl.SSLError) -> ConnectionFailed:
    """Why no encrypted connection came to be, or why it ended."""
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, ssl.SSLCertVerificationError):
        said = error.verify_message
        if re.search(r"hostname|IP address", said, re.IGNORECASE):
            cure = (
                "connect by a name that its certificate has; "
                "an empty ssl.endpoint.identification.algorithm does not look at names"
            )
        else:
            cure = _TRUST_CURE
        return TlsFailed(str(address), f"the certificate of {address} is not valid: {said}", cure)
    if "alert" in reason and ("certificate" in reason or "handshake failure" in reason):
        return TlsFailed(
            str(address),
            f"{address} refused this client: {reason}",
            "set ssl.keystore.location to a PEM file with a key and a certificate that the broker trusts",
        )
    if reason in ("wrong version number", "record layer failure", "packet length too long", "http request"):
        return TlsFailed(
            str(address),
            f"{address} does not speak TLS ({reason})",
            "set security.protocol=PLAINTEXT or SASL_PLAINTEXT, or give the address of a TLS listener",
        )
    return TlsFailed(
        str(address),
        f"the encrypted connection to {address} failed: {reason}",
        "the broker's log may tell why",
    )
