"""What a frame on the ZooKeeper port means: a four-letter word, a handshake, or a request of a session.

Requests of a connection are taken up in order and answered in order. Changes do not hold up what is behind
them: the room gives answers and watch events in the order a client must see them, when they are durable.
"""

from __future__ import annotations

import logging
from typing import Any

from ottla.coordination.operations import Code, Result
from ottla.coordination.service import CoordinationService
from ottla.coordination.sessions import Client
from ottla.model.clock import monotonic_us_of
from ottla.model.limits import ANSWER_BYTES_AHEAD, ZNODE_TURN_HANDLING_US_MAX
from ottla.model.metrics import Registry
from ottla.model.problems import Malformed
from ottla.model.zookeeper_config import ZooKeeperConfig
from ottla.protocol.frames import FrameCutter
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.frames import WORD_BYTES, OpeningCutter
from ottla.protocol.zookeeper.headers import REQUEST_HEADER_BYTES
from ottla.protocol.zookeeper.jute import decode, encode
from ottla.protocol.zookeeper.operations import OpCode
from ottla.protocol.zookeeper.records import AuthRequest, SaslToken
from ottla.server.application import Arrivals
from ottla.server.connection import Connection
from ottla.server.reactor import Reactor
from ottla.server.zookeeper.authentication import SaslExchange, add_identity, identity_of
from ottla.server.zookeeper.changes import ROUTES as CHANGES
from ottla.server.zookeeper.changes import decode_multi, encode_multi
from ottla.server.zookeeper.four_letter_words import Words
from ottla.server.zookeeper.frequent_requests import operation_of, xid_of
from ottla.server.zookeeper.handshake import shake_hands
from ottla.server.zookeeper.peer import Exchange, Peer, begin_exchange
from ottla.server.zookeeper.reads import READS
from ottla.server.zookeeper.route import Route
from ottla.server.zookeeper.traffic import Traffic

log = logging.getLogger(__name__)

_NO_ZXID = 0  # in the headers of answers to auth packets


class ZooKeeperApplication:
    def __init__(
        self,
        service: CoordinationService,
        reactor: Reactor,
        config: ZooKeeperConfig,
        metrics: Registry,
    ) -> None:
        self.peers: dict[Connection, Peer] = {}
        self.traffic = Traffic(reactor.clock)
        self._service = service
        self._reactor = reactor
        self._sasl_passwords = config.sasl_passwords
        self._clock = reactor.clock
        self._arrived_us = 0  # when the frames of this turn came
        self._words = Words(service, config, self.peers, self.traffic, reactor.clock)
        self._drop_one = self._drop  # one for all peers
        self._protocol_errors = metrics.counter("zookeeper.protocol_errors")
        metrics.gauge("zookeeper.connections.open", lambda: len(self.peers))
        metrics.gauge("zookeeper.requests", lambda: self.traffic.received)

    # -- from the reactor ------------------------------------------------------------------------------------

    def cutter(self, frame_bytes_max: int) -> FrameCutter:
        return OpeningCutter(frame_bytes_max)

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        self._arrived_us = monotonic_us_of(self._clock)
        late_us = self._arrived_us + ZNODE_TURN_HANDLING_US_MAX
        unserved: list[Connection] = []
        for connection, frames in arrivals:
            if not self._handle_all(connection, frames, late_us):
                unserved.append(connection)
        return unserved

    def disconnected(self, connection: Connection) -> None:
        peer = self.peers.pop(connection, None)
        if peer is not None and peer.client is not None:
            self._service.disconnect(peer.client)

    # -- handling --------------------------------------------------------------------------------------------

    def _handle_all(self, connection: Connection, frames: list[Buffer], late_us: int) -> bool:
        """Frames one by one, as far as time and the connection allow; False when that was not even one."""
        peer = self.peers.get(connection) or self._welcome(connection)
        peer.answer_bytes = 0
        for number in range(len(frames)):
            is_late = peer.answer_bytes > ANSWER_BYTES_AHEAD or monotonic_us_of(self._clock) > late_us
            if is_late or not connection.may_go_on():
                connection.give_back(frames[number:])
                return number > 0
            try:
                self._handle(peer, frames[number])
            except Malformed as problem:
                self._drop(connection, str(problem))
                return True
            except Exception as error:  # a bug of ours: this client suffers, nobody else
                log.error("a ZooKeeper request failed", exc_info=error)
                self._drop(connection, "its request failed, see above")
                return True
        return True

    def _welcome(self, connection: Connection) -> Peer:
        now_ms = self._reactor.clock.wall_ms()
        peer = Peer(connection, now_ms, self.traffic, self._drop_one)
        self.peers[connection] = peer
        return peer

    def _drop(self, connection: Connection, reason: str) -> None:
        self._protocol_errors.value += 1
        self._reactor.drop(connection, reason)

    def _handle(self, peer: Peer, frame: Buffer) -> None:
        peer.received += 1
        self.traffic.received += 1
        client = peer.client
        if client is None:
            self._open(peer, frame)
            return
        xid, operation = xid_of(frame), operation_of(frame)
        if (route := READS.get(operation)) is not None:
            read = _asked(route, frame)
            self._service.read(client, read, begin_exchange(peer, xid, route.encode, self._arrived_us).answer)
        elif (route := CHANGES.get(operation)) is not None:
            change = _asked(route, frame)
            exchange = begin_exchange(peer, xid, route.encode, self._arrived_us)
            self._service.submit(client, change, exchange.answer)
        elif operation == OpCode.PING:
            self._service.touch(client)
            self._expect(peer, xid).reply(self._service.zxid, Code.OK)
        else:
            self._handle_rare(peer, client, xid, operation, frame)

    def _open(self, peer: Peer, frame: Buffer) -> None:
        exchange = self._expect(peer, 0)
        if len(frame) == WORD_BYTES:
            word = bytes(frame).decode("ascii", "replace")
            exchange.send(self._words.answer(word, peer.connection.listener.port))
            peer.end()
        else:
            shake_hands(peer, frame, exchange, self._service)

    def _expect(self, peer: Peer, xid: int) -> Exchange:
        return begin_exchange(peer, xid, _nothing, self._arrived_us)

    def _handle_rare(self, peer: Peer, client: Client, xid: int, operation: int, frame: Buffer) -> None:
        match operation:
            case OpCode.MULTI:
                self._change_together(peer, client, xid, frame)
            case OpCode.CLOSE_SESSION:
                self._close_session(peer, client, xid)
            case OpCode.AUTH:
                self._authenticate(peer, client, xid, frame)
            case OpCode.SASL:
                self._take_sasl_step(peer, client, xid, frame)
            case OpCode.RECONFIG:
                self._expect(peer, xid).reply(self._service.zxid, Code.RECONFIG_DISABLED)
            case _:
                self._expect(peer, xid).reply(self._service.zxid, Code.UNIMPLEMENTED)

    def _change_together(self, peer: Peer, client: Client, xid: int, frame: Buffer) -> None:
        multi, operations = decode_multi(frame, REQUEST_HEADER_BYTES)
        exchange = self._expect(peer, xid)

        def answer(result: Result) -> None:
            exchange.reply(result.zxid, Code.OK, encode_multi(operations, result))

        self._service.submit(client, multi, answer)

    def _close_session(self, peer: Peer, client: Client, xid: int) -> None:
        exchange = self._expect(peer, xid)

        def closed(result: Result) -> None:
            exchange.answer(result)
            peer.end()

        self._service.close_session(client, closed)

    def _authenticate(self, peer: Peer, client: Client, xid: int, frame: Buffer) -> None:
        request = decode(AuthRequest, frame, REQUEST_HEADER_BYTES)
        identity = identity_of(request.scheme, request.auth or b"", peer.connection.peer_host)
        if identity is not None:
            add_identity(client, identity)
            self._expect(peer, xid).reply(_NO_ZXID, Code.OK)
        else:
            self._refuse_authentication(
                peer, xid, f"its proof for the scheme {request.scheme[:40]!r} is none"
            )

    def _take_sasl_step(self, peer: Peer, client: Client, xid: int, frame: Buffer) -> None:
        if not self._sasl_passwords:
            self._refuse_authentication(peer, xid, "SASL needs ottla.zookeeper.sasl.users")
            return
        token = decode(SaslToken, frame, REQUEST_HEADER_BYTES).token or b""
        peer.sasl = peer.sasl or SaslExchange(self._sasl_passwords)
        answer = peer.sasl.step(client, token)
        if answer is None:
            self._refuse_authentication(peer, xid, "its SASL response proves nothing")
        else:
            self._expect(peer, xid).reply(_NO_ZXID, Code.OK, encode(SaslToken(answer)))

    def _refuse_authentication(self, peer: Peer, xid: int, reason: str) -> None:
        log.warning("%s is not authenticated: %s", peer.connection, reason)
        self._expect(peer, xid).reply(_NO_ZXID, Code.AUTH_FAILED)
        peer.end()


def _asked(route: Route, frame: Buffer) -> Any:
    """What the request asks for, as the room calls it."""
    if route.frequent is not None:
        asked = route.frequent(frame)
        if asked is not None:
            return asked
    asked, _ = route.decode(frame, REQUEST_HEADER_BYTES)
    return asked


def _nothing(_: object) -> bytes:
    return b""
