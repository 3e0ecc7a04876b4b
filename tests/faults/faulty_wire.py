"""A wire between clients and a broker that sees frames, and breaks them on request.

    wire.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)   answers itself; the broker never sees it
    wire.cut("Produce")                 ends the connection before the broker sees the request
    wire.lose_answer("Produce")         the broker does its work, and the connection ends instead of an answer
    wire.stall("Fetch")                 from here on nothing passes on this connection, either way
    wire.garble("Fetch")                the answer's bytes are noise

The broker must advertise the wire's address, so that clients stay on it.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from contextlib import suppress
from queue import SimpleQueue

from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ADD_PARTITIONS_TO_TXN, APIS, FETCH, PRODUCE, TXN_OFFSET_COMMIT, Api
from ottla.protocol.codec import decode
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_request_header, encode_response
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_SIZE = struct.Struct(">i")


class FaultyWire:
    def __init__(self) -> None:
        self.backend: tuple[str, int] | None = None  # the broker; None: it is away
        self.seen: Counter[str] = Counter()  # requests by API
        self._faults: list[tuple[str, str, ErrorCode | None]] = []  # API, what, code; used in order
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: set[socket.socket] = set()
        self._is_closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    # -- faults --------------------------------------------------------------------------------------------

    def fail(self, api: str, code: ErrorCode, times: int = 1) -> None:
        self._add(api, "fail", times, code)

    def cut(self, api: str, times: int = 1) -> None:
        self._add(api, "cut", times)

    def lose_answer(self, api: str, times: int = 1) -> None:
        self._add(api, "lose_answer", times)

    def stall(self, api: str, times: int = 1) -> None:
        self._add(api, "stall", times)

    def garble(self, api: str, times: int = 1) -> None:
        self._add(api, "garble", times)

    @property
    def faults_left(self) -> int:
        return len(self._faults)

    def forget_faults(self) -> None:
        with self._lock:
            self._faults.clear()

    def cut_all(self) -> None:
        """Ends every connection at once."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for each in sockets:
            _end(each)

    def close(self) -> None:
        self._is_closed = True
        _end(self._listener)
        self.cut_all()

    def _add(self, api: str, what: str, times: int, code: ErrorCode | None = None) -> None:
        with self._lock:
            self._faults += [(api, what, code)] * times

    def _next_fault(self, api: str) -> tuple[str, ErrorCode | None] | None:
        with self._lock:
            self.seen[api] += 1
            for index, (name, what, code) in enumerate(self._faults):
                if name == api:
                    del self._faults[index]
                    return what, code
        return None

    # -- connections ---------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.backend is None:
                    raise ConnectionRefusedError
                broker = socket.create_connection(self.backend)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets |= {client, broker}
            # What becomes of each request's answer, in order: our own bytes, or what to do with the broker's.
            answers: SimpleQueue[bytes | str] = SimpleQueue()
            threading.Thread(target=self._requests, args=(client, broker, answers), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, broker, answers), daemon=True).start()

    def _requests(
        self, client: socket.socket, broker: socket.socket, answers: SimpleQueue[bytes | str]
    ) -> None:
        what = ""
        try:
            while frame := _read_frame(client):
                header, position = decode_request_header(frame)
                api = APIS[header.api_key]
                fault = self._next_fault(api.name)
                what = "pass" if fault is None else fault[0]
                if what == "cut":
                    break
                if what == "stall":
                    answers.put("stall")
                    break
                if what == "fail":
                    assert fault is not None
                    assert fault[1] is not None
                    request, _ = decode(api.request, header.api_version, frame, position)
                    refusal = _refusal(api, request, fault[1])
                    chunks = encode_response(api, header.api_version, header.correlation_id, refusal)
                    answers.put(b"".join(chunks))  # type: ignore[arg-type]
                    continue
                if not _is_unanswered(api, header.api_version, frame, position):
                    answers.put(what)
                broker.sendall(_SIZE.pack(len(frame)) + frame)
        except OSError:
            pass
        if what != "stall":
            _end(client)
            _end(broker)
            answers.put("end")

    def _answers(
        self, client: socket.socket, broker: socket.socket, answers: SimpleQueue[bytes | str]
    ) -> None:
        try:
            while True:
                answer = answers.get()
                if answer == "stall":
                    return
                if isinstance(answer, bytes):
                    client.sendall(answer)
                    continue
                frame = b"" if answer == "end" else _read_frame(broker)
                if not frame or answer == "lose_answer":
                    break
                if answer == "garble":
                    frame = frame[:4] + bytes(byte ^ 0xA5 for byte in frame[4:])
                client.sendall(_SIZE.pack(len(frame)) + frame)
        except OSError:
            pass
        _end(client)
        _end(broker)


def _is_unanswered(api: Api, version: int, frame: bytes, position: int) -> bool:
    if api is not PRODUCE:
        return False
    request, _ = decode(ProduceRequest, version, frame, position)
    return request.acks == 0


def _refusal(api: Api, request: Message, code: ErrorCode) -> Message:
    if api is PRODUCE:
        assert isinstance(request, ProduceRequest)
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    [PartitionProduceResponse(each.index, code, -1) for each in topic.partition_data],
                )
                for topic in request.topic_data
            ]
        )
    if api is FETCH:
        assert isinstance(request, FetchRequest)
        if code in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
            return FetchResponse(error_code=code)
        return FetchResponse(
            session_id=request.session_id,
            responses=[
                FetchableTopicResponse(
                    topic.topic,
                    topic.topic_id,
                    [PartitionData(each.partition, code, records=b"") for each in topic.partitions],
                )
                for topic in request.topics
            ],
        )
    if api is ADD_PARTITIONS_TO_TXN:
        assert isinstance(request, AddPartitionsToTxnRequest)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    topic.name, [AddPartitionsToTxnPartitionResult(each, code) for each in topic.partitions]
                )
                for topic in request.v3_and_below_topics
            ]
        )
    if api is TXN_OFFSET_COMMIT:
        assert isinstance(request, TxnOffsetCommitRequest)
        return TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    topic.name,
                    [
                        TxnOffsetCommitResponsePartition(each.partition_index, code)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    return api.response(error_code=code)  # type: ignore[call-arg]  # the others have one for all


def _read_frame(peer: socket.socket) -> bytes:
    """One frame without its size; empty: the peer has ended."""
    head = _read(peer, 4)
    return _read(peer, _SIZE.unpack(head)[0]) if head else b""


def _read(peer: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = peer.recv(min(count, 1 << 20))
        if not part:
            return b""
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _end(peer: socket.socket) -> None:
    with suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
    peer.close()
