"""One ZooKeeper client's connection: its requests and their answers, and the watch events in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Protocol

from ottla.coordination.operations import Code
from ottla.coordination.sessions import Client
from ottla.coordination.watches import WatchEvent
from ottla.model.limits import EVENT_BYTES_AHEAD
from ottla.protocol.primitives import Chunk
from ottla.protocol.zookeeper.headers import NOTIFICATION_XID
from ottla.protocol.zookeeper.jute import writer
from ottla.protocol.zookeeper.records import WatcherEvent
from ottla.server.connection import Connection
from ottla.server.zookeeper.answer_bodies import encode_reply
from ottla.server.zookeeper.authentication import SaslExchange
from ottla.server.zookeeper.traffic import Traffic

_STATE_CONNECTED = 3
_encode_event = writer(WatcherEvent)

EncodeValue = Callable[[Any], bytes]

_EVENTS_KEPT = 16  # those of one transaction, which many may hear of


@lru_cache(_EVENTS_KEPT)
def _event_bytes(event: WatchEvent) -> bytes:
    body = _encode_event(WatcherEvent(event.type, _STATE_CONNECTED, event.path))
    return encode_reply(NOTIFICATION_XID, event.zxid, Code.OK, body)


class Answered(Protocol):
    """What the room answers: a read's Answer, a change's Result."""

    @property
    def code(self) -> int: ...
    @property
    def zxid(self) -> int: ...


class Peer:
    __slots__ = (
        "answer_bytes", "client", "connection", "drop", "established_ms", "events_unsent_bytes",
        "received", "sasl", "sent", "total",
    )  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        established_ms: int,
        total: Traffic,
        drop: Callable[[Connection, str], None],
    ) -> None:
        self.connection = connection
        self.client: Client | None = None  # once it has asked for a session
        self.established_ms = established_ms
        self.received = 0  # requests
        self.sent = 0  # answers and events
        self.total = total  # of all peers
        self.drop = drop  # closes a connection for a reason
        self.sasl: SaslExchange | None = None  # under way
        self.answer_bytes = 0  # given in this turn
        self.events_unsent_bytes = 0  # events since the socket last took everything

    @property
    def address(self) -> str:
        return f"{self.connection.peer_host}:{self.connection.peer_port}"

    def notify(self, event: WatchEvent) -> None:
        """An event overtakes the answers that are awaited: they may show what it tells of."""
        reply = _event_bytes(event)
        if not self.connection.has_output:
            self.events_unsent_bytes = 0
        self.events_unsent_bytes += len(reply)
        if self.events_unsent_bytes > EVENT_BYTES_AHEAD:
            unread = f"{self.events_unsent_bytes} bytes of watch events wait for it to read them"
            self.drop(self.connection, unread)
            return
        self.sent += 1
        self.connection.push(reply)

    def end(self) -> None:
        """What is owed is sent, then the connection is closed."""
        self.connection.end()


class Exchange:
    """One request and its place in the order of answers."""

    __slots__ = ("arrived_us", "blocks", "chunks", "encode", "peer", "xid")

    peer: Peer
    xid: int
    encode: EncodeValue  # the body of an answer without an error
    arrived_us: int
    blocks: bool  # whether requests behind it wait
    chunks: Sequence[Chunk] | None

    def answer(self, answered: Answered) -> None:
        """From the room, when what the answer tells is durable."""
        code = answered.code
        self.send(encode_reply(self.xid, answered.zxid, code, b"" if code else self.encode(answered)))

    def reply(self, zxid: int, code: int, body: bytes = b"") -> None:
        self.send(encode_reply(self.xid, zxid, code, body))

    def send(self, data: bytes) -> None:
        assert self.chunks is None, "answered twice"
        self.chunks = (data,)
        peer = self.peer
        peer.answer_bytes += len(data)
        peer.sent += 1
        peer.total.answered(self.arrived_us)
        peer.connection.answered()

    def abandon(self) -> None:
        """The connection is gone; the room does not answer it any more."""


def begin_exchange(peer: Peer, xid: int, encode: EncodeValue, arrived_us: int) -> Exchange:
    # Field by field: compiled, a call would make objects of the numbers.
    exchange = Exchange.__new__(Exchange)
    exchange.peer = peer
    exchange.xid = xid
    exchange.encode = encode
    exchange.arrived_us = arrived_us
    exchange.blocks = False
    exchange.chunks = None
    peer.connection.pending.append(exchange)
    return exchange
