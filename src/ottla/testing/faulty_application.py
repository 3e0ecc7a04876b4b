"""Between a test broker's reactor and its Kafka application: makes requests go wrong as the test has asked.

Costs one look per turn while nothing is asked. Only brokers that `ottla.testing` starts have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.log.file_range import FileRange
from ottla.model.errors import ErrorCode, Malformed
from ottla.protocol import apis
from ottla.protocol.apis import APIS, Api
from ottla.protocol.codec import Chunk, decode
from ottla.protocol.fields import Message
from ottla.protocol.frames import FrameCutter
from ottla.protocol.headers import RequestHeader, decode_request_header, decode_response, encode_response
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from ottla.protocol.messages.produce import ProduceRequest
from ottla.protocol.primitives import Buffer
from ottla.server.application import Application, Arrivals
from ottla.server.connection import Connection, PendingAnswer
from ottla.server.reactor import Reactor
from ottla.testing.faults import Fault, FaultKind, Faults
from ottla.testing.refusals import refusal

_REASON = "a fault that a test asked for"
_NOISE = bytes(byte ^ 0xA5 for byte in range(256))
_HEAD_BYTES = 8  # size and correlation id: whom an answer belongs to stays readable


class FaultyApplication:
    def __init__(self, application: Application, reactor: Reactor, faults: Faults) -> None:
        self._application = application
        self._reactor = reactor
        self._faults = faults
        self._delayed: set[Connection] = set()  # whose next request has waited already

    def cutter(self, frame_bytes_max: int) -> FrameCutter:
        return self._application.cutter(frame_bytes_max)

    def disconnected(self, connection: Connection) -> None:
        self._delayed.discard(connection)
        self._application.disconnected(connection)

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        if not self._faults.api_keys and not self._delayed:
            return self._application.handle_frames(arrivals)
        untouched: Arrivals = []
        unserved = []
        for connection, frames in arrivals:
            if connection not in self._delayed and not any(map(self._is_awaited, frames)):
                untouched.append((connection, frames))
            else:
                unserved += self._handle_one_by_one(connection, frames)
        return unserved + self._application.handle_frames(untouched)

    def _is_awaited(self, frame: Buffer) -> bool:
        return int.from_bytes(frame[:2], "big", signed=True) in self._faults.api_keys

    def _handle_one_by_one(self, connection: Connection, frames: list[Buffer]) -> list[Connection]:
        for number, frame in enumerate(frames):
            if not connection.may_go_on():
                connection.give_back(frames[number:])
                return [] if number else [connection]
            fault = self._take(connection, frame)
            if fault is not None and fault.kind is FaultKind.DELAY:
                connection.give_back(frames[number:])
                self._delayed.add(connection)
                self._reactor.mute(connection, fault.delay_ms)
                return []
            if fault is None:
                self._pass(connection, frame)
            else:
                self._break(connection, frame, fault)
        return []

    def _take(self, connection: Connection, frame: Buffer) -> Fault | None:
        has_waited = connection in self._delayed
        self._delayed.discard(connection)
        if has_waited or not self._is_awaited(frame):
            return None
        try:
            header, _ = decode_request_header(frame)
        except Malformed:
            return None  # the application says what is wrong with it
        return self._faults.take(header.api_key, header.client_id)

    def _pass(self, connection: Connection, frame: Buffer) -> None:
        self._application.handle_frames([(connection, [frame])])

    # -- one request -----------------------------------------------------------------------------------------

    def _break(self, connection: Connection, frame: Buffer, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.DISCONNECT:
                self._reactor.drop(connection, _REASON)
            case FaultKind.STALL:
                connection.expect(_Answer(None))
            case FaultKind.LOSE_ANSWER:
                self._pass_spoiled(connection, frame, lambda _: self._drop_soon(connection))
            case FaultKind.CORRUPT:
                self._pass_spoiled(connection, frame, _garbled)
            case _:
                self._refuse(connection, frame, fault)

    def _refuse(self, connection: Connection, frame: Buffer, fault: Fault) -> None:
        header, position = decode_request_header(frame)
        api = APIS[header.api_key]
        if api is apis.METADATA:
            # Clients find the brokers by its answer: a refusal has to have them.
            self._pass_spoiled(connection, frame, lambda chunks: _without_topics(chunks, header, fault.code))
            return
        try:
            request, _ = decode(api.request, header.api_version, frame, position)
        except Malformed:
            self._faults.give_back(fault)
            self._pass(connection, frame)
            return
        if isinstance(request, ProduceRequest) and request.acks == 0:
            self._reactor.drop(connection, _REASON)  # there is no answer to put an error in
            return
        code = fault.code
        if isinstance(request, FetchRequest) and request.session_id and not request.topics:
            # It names no partition that could be refused: the next one will.
            self._faults.give_back(fault)
            code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        answer = refusal(request, api.response, header.api_version, code)
        self._answer(connection, api, header, answer)

    def _answer(self, connection: Connection, api: Api, header: RequestHeader, message: Message) -> None:
        chunks = encode_response(api, header.api_version, header.correlation_id, message)
        connection.expect(_Answer(chunks))
        connection.answered()

    def _pass_spoiled(self, connection: Connection, frame: Buffer, spoil: Spoil) -> None:
        before = len(connection.pending)
        self._pass(connection, frame)
        if len(connection.pending) > before:
            connection.pending[-1] = _SpoiledAnswer(connection.pending[-1], spoil)

    def _drop_soon(self, connection: Connection) -> None:
        """Not within the send that asks for the answer."""
        self._reactor.post(lambda: self._reactor.drop(connection, _REASON))


Spoil = Callable[[Sequence[Chunk]], Sequence[Chunk] | None]


class _Answer:
    """A request that the application never saw, with its answer or without one for ever."""

    def __init__(self, chunks: Sequence[Chunk] | None) -> None:
        self.chunks = chunks
        self.blocks = True

    def abandon(self) -> None:
        pass


class _SpoiledAnswer:
    """The application's answer, once it is there, as the test wants it; None holds back all behind it too."""

    def __init__(self, answer: PendingAnswer, spoil: Spoil) -> None:
        self._answer = answer
        self._spoil = spoil
        self._is_spoiled = False
        self._chunks: Sequence[Chunk] | None = None

    @property
    def chunks(self) -> Sequence[Chunk] | None:
        if not self._is_spoiled and self._answer.chunks is not None:
            self._is_spoiled = True
            self._chunks = self._spoil(self._answer.chunks)
        return self._chunks

    @property
    def blocks(self) -> bool:
        return self._answer.blocks

    def abandon(self) -> None:
        self._answer.abandon()


def _whole(chunks: Sequence[Chunk]) -> bytes:
    return b"".join(
        chunk.handle.pread(chunk.size, chunk.position) if isinstance(chunk, FileRange) else bytes(chunk)  # type: ignore[arg-type]
        for chunk in chunks
    )


def _garbled(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    frame = _whole(chunks)
    return [frame[:_HEAD_BYTES] + frame[_HEAD_BYTES:].translate(_NOISE)]


def _without_topics(chunks: Sequence[Chunk], header: RequestHeader, code: ErrorCode) -> Sequence[Chunk]:
    correlation_id, answer = decode_response(apis.METADATA, header.api_version, _whole(chunks)[4:])
    assert isinstance(answer, MetadataResponse)
    values = {name: getattr(answer, name) for name in answer.__field_defaults__}
    values["topics"] = [
        MetadataResponseTopic(error_code=code, name=each.name, topic_id=each.topic_id)
        for each in answer.topics
    ]
    if not answer.topics:
        values["error_code"] = int(code)
    return encode_response(apis.METADATA, header.api_version, correlation_id, MetadataResponse(**values))
