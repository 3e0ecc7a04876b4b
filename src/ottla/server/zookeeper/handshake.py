"""How a connection gets its session: a new one, or the one it had before, if it knows the password."""

from __future__ import annotations

from ottla.coordination.service import CoordinationService
from ottla.coordination.sessions import Session
from ottla.model.problems import Malformed
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.headers import (
    ConnectResponse,
    decode_connect_request,
    encode_connect_response,
)
from ottla.server.zookeeper.peer import Exchange, Peer

_PROTOCOL_VERSION = 0
_EXPIRED = ConnectResponse(_PROTOCOL_VERSION, 0, 0, bytes(16))


def shake_hands(peer: Peer, frame: Buffer, exchange: Exchange, service: CoordinationService) -> None:
    """The first frame of a connection. What comes behind it waits until the session is there."""
    request, read_only = decode_connect_request(frame)
    if request.last_zxid_seen > service.zxid:
        raise Malformed(
            f"it has seen transaction 0x{request.last_zxid_seen:x}, and ours end with 0x{service.zxid:x}: "
            "its session is of another service, or our data was restored from an older copy"
        )
    exchange.blocks = True
    client = peer.client = service.connect(peer.connection.peer_host, peer)

    def established(session: Session | None) -> None:
        if session is None:
            response = _EXPIRED
            peer.end()
        else:
            response = ConnectResponse(_PROTOCOL_VERSION, session.timeout_ms, session.id, session.password)
        exchange.send(encode_connect_response(response, with_read_only=read_only is not None))

    if request.session_id == 0:
        service.open_session(client, request.timeout_ms, established)
    else:
        service.reopen_session(
            client, request.session_id, request.password or b"", request.timeout_ms, established
        )
