"""What kind of server answers where a Kafka broker was expected, and what to tell the user about it.

Most are known by their first bytes. Some hang up or wait for more: those `probe` asks once in their own
language. Nothing here is on the way of a connection that works.
"""

from __future__ import annotations

import socket

from ottla.client.addresses import Address
from ottla.client.conversation import Phase
from ottla.client.errors import BrokerUnreachable, ConnectionFailed, Disconnected, WrongServer

_PROBE_SECONDS = 1.0

_CURES = {
    "HTTP": "give the address of the broker's Kafka listener (often port 9092), not of its web port",
    "TLS": "set security.protocol=SSL or SASL_SSL, or give the address of a plaintext listener",
    "ZooKeeper": "clients speak to brokers, not to ZooKeeper: give a broker's address (often port 9092)",
    "unknown": "check host and port: what answers there does not speak Kafka's protocol",
}


def recognise(start: bytes) -> str | None:
    """The kind of server that begins an answer so; None: it may be a Kafka broker."""
    if start.startswith((b"HTTP/", b"<!DOCTYPE", b"<html")):
        return "HTTP"
    if len(start) >= 3 and start[0] in (0x14, 0x15, 0x16, 0x17) and start[1] == 3 and start[2] <= 4:
        return "TLS"
    if start.startswith((b"Zookeeper version", b"imok")) or b"is not in the whitelist" in start:
        return "ZooKeeper"
    if start.startswith((b"SSH-", b"220 ", b"-ERR")):
        return "unknown"
    return None


def wrong_server(address: Address, kind: str) -> WrongServer:
    name = "a server of another kind" if kind == "unknown" else f"a server that speaks {kind}"
    return WrongServer(str(address), kind, f"{address} is {name}, not a Kafka broker", _CURES[kind])


def broken(
    address: Address,
    phase: Phase,
    error: OSError | None,
    *,
    is_met: bool,
    is_encrypted: bool,
    may_want_login: bool,
) -> ConnectionFailed:
    """Why a connection ended; without an error its server has closed it."""
    if is_encrypted:
        import ssl

        from ottla.client import tls

        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return tls.failure(address, error)
        if phase in (Phase.CONNECTING, Phase.NEGOTIATING) and not is_met:
            return _hung_up_encrypted(address, in_handshake=phase is Phase.CONNECTING)
    elif phase is Phase.NEGOTIATING and not is_met:
        return hung_up(address)
    reason = "closed the connection" if error is None else f"is lost ({error.strerror or error})"
    cure = "the broker may be restarting"
    if error is None and may_want_login:
        cure += ", or want a login (security.protocol, sasl.mechanism)"
    return Disconnected(str(address), f"{address} {reason}", cure)


def hung_up(address: Address) -> ConnectionFailed:
    """Why a server may have closed the connection before its first answer. Takes a second or two at most."""
    kind = probe(address)
    if kind is not None:
        return wrong_server(address, kind)
    return BrokerUnreachable(
        str(address),
        f"{address} takes connections but closes them without an answer",
        "the broker may be starting or stopping, or want TLS or a login; its log tells",
    )


def _hung_up_encrypted(address: Address, *, in_handshake: bool) -> BrokerUnreachable:
    """Why a server may have closed a connection that was to be encrypted before its first answer."""
    if in_handshake:
        text, cure = "closes them in the TLS handshake", "it may not speak TLS (security.protocol)"
    else:
        text = "closes encrypted ones without an answer"
        cure = "it may want to know who this client is (ssl.keystore.location)"
    return BrokerUnreachable(
        str(address),
        f"{address} takes connections but {text}",
        f"{cure}, or be starting or stopping; its log tells",
    )


def unreachable(address: Address, reason: str) -> BrokerUnreachable:
    local = address.host in ("localhost", "127.0.0.1", "::1")
    cure = (
        "start one with `ottla up`, or give another address"
        if local
        else "check the address, and that it runs"
    )
    return BrokerUnreachable(str(address), f"no broker at {address} ({reason})", cure)


def probe(address: Address) -> str | None:
    """Asks a server that hung up or says nothing in the languages it may speak."""
    for question in (b"srvr", b"GET / HTTP/1.0\r\n\r\n"):
        kind = recognise(_ask(address, question))
        if kind is not None:
            return kind
    return "TLS" if _speaks_tls(address) else None


def _ask(address: Address, question: bytes) -> bytes:
    try:
        with socket.create_connection(address, _PROBE_SECONDS) as peer:
            peer.settimeout(_PROBE_SECONDS)
            peer.sendall(question)
            return peer.recv(1024)
    except OSError:
        return b""


def _speaks_tls(address: Address) -> bool:
    """Whether a handshake begins; who the server is does not matter here."""
    import ssl  # 10 ms that no working connection should pay

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, _PROBE_SECONDS) as peer,
            context.wrap_socket(peer, server_hostname=address.host),
        ):
            return True
    except ssl.SSLError as error:
        # Refusals that only a TLS server gives, such as a demand for a client certificate.
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
