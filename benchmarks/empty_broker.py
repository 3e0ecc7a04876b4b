"""A broker that keeps nothing and has nothing: what a client reaches with it is the client's own ceiling.

    python -m benchmarks.empty_broker VALUE_BYTES [PARTITIONS]

Prints the address that it chose, and serves until it is killed. Every topic has so many partitions, or one.
What is produced is received, into one place that stays in the processor's cache, and acknowledged; what is
fetched is always the same batch of a megabyte, under the offset that was asked for.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from benchmarks.processes import SERVER_CORE, on_core
from benchmarks.questions import MIB

from ottla.protocol import apis, codec
from ottla.protocol.apis import Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_request_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.protocol.primitives import Chunk
from ottla.records.content import Record, build_batch

_VERSIONS = {
    apis.API_VERSIONS: (0, 3),
    apis.METADATA: (0, 8),
    apis.PRODUCE: (0, 7),
    apis.LIST_OFFSETS: (1, 5),
    apis.FETCH: (4, 11),
}
_HOST = "127.0.0.1"
_OFFSET = struct.Struct(">q")
_TOPIC_LENGTH = struct.Struct(">12xh")  # behind transactional id, acks, timeout, count
_PARTITION = struct.Struct(">4xi")  # behind the topic and a count
_OFFSET_MAX = 2**62
_HEAD_BYTES = 256  # of a Produce: all that is looked at
_BATCH_BYTES = MIB - 16 * 1024  # librdkafka asks for a megabyte, with all around it


@contextmanager
def serving(value_bytes: int, partitions: int = 1) -> Iterator[str]:
    """Its address; on the core of the brokers."""
    with on_core(SERVER_CORE):
        command = [sys.executable, "-m", "benchmarks.empty_broker", str(value_bytes), str(partitions)]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert broker.stdout is not None
    try:
        yield broker.stdout.readline().strip()
    finally:
        broker.kill()
        broker.communicate()


class EmptyBroker:
    def __init__(self, port: int, value_bytes: int, partitions: int) -> None:
        self._port = port
        self._partitions = partitions
        now_ms = time.time_ns() // 1_000_000
        noise = os.urandom(MIB)
        count = _BATCH_BYTES // (value_bytes + 8)
        starts = (number * 61 % (MIB - value_bytes) for number in range(count))
        records = [
            Record(at, now_ms, None, noise[start : start + value_bytes]) for at, start in enumerate(starts)
        ]
        self._batch = bytearray(build_batch(records))

    def serve(self, peer: socket.socket) -> None:
        """Until the peer hangs up."""
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = memoryview(bytearray(MIB))
        with peer, suppress(ConnectionError):
            while True:
                (size,) = struct.unpack(">i", _receive(peer, room[:4]))
                frame = _receive(peer, room[: min(size, _HEAD_BYTES)])
                if _api_of(frame) is apis.PRODUCE:
                    frame = memoryview(bytes(frame))
                    for left in range(size - len(frame), 0, -len(room)):
                        _receive(peer, room[: min(left, len(room))])
                elif size > len(frame):
                    _receive(peer, room[len(frame) : size])
                    frame = room[:size]
                for chunk in self._answer(frame):
                    peer.sendall(chunk)  # type: ignore[arg-type]

    def _answer(self, frame: memoryview) -> list[Chunk]:
        header, position = decode_request_header(frame)
        api = _api_of(frame)
        if api is apis.PRODUCE:
            answer: Message = _produced(frame, position)
        elif api is apis.API_VERSIONS:
            answer = ApiVersionsResponse(
                0, [ApiVersion(each.key, *known) for each, known in _VERSIONS.items()]
            )
        else:
            request, _ = codec.decode(api.request, header.api_version, frame, position)
            answers: dict[Api, Callable[[Any], Message]] = {
                apis.METADATA: self._metadata,
                apis.LIST_OFFSETS: _offsets,
                apis.FETCH: self._fetched,
            }
            answer = answers[api](request)
        return encode_response(api, header.api_version, header.correlation_id, answer)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for index in range(self._partitions)
        ]
        topics = [MetadataResponseTopic(0, each.name, partitions=partitions) for each in request.topics or ()]
        brokers = [MetadataResponseBroker(1, _HOST, self._port)]
        return MetadataResponse(brokers=brokers, controller_id=1, topics=topics)

    def _fetched(self, request: FetchRequest) -> FetchResponse:
        topic = request.topics[0]
        batch = self._batch
        _OFFSET.pack_into(batch, 0, topic.partitions[0].fetch_offset)  # which no checksum covers
        found = PartitionData(high_watermark=_OFFSET_MAX, last_stable_offset=_OFFSET_MAX, records=batch)
        return FetchResponse(responses=[FetchableTopicResponse(topic.topic, partitions=[found])])


def _api_of(frame: memoryview) -> Api:
    return apis.APIS[int.from_bytes(frame[:2], "big")]


def _produced(frame: memoryview, position: int) -> ProduceResponse:
    """To the one partition that a request names; its body may be gone behind the topic's name."""
    (length,) = _TOPIC_LENGTH.unpack_from(frame, position)
    start = position + _TOPIC_LENGTH.size
    topic = str(frame[start : start + length], "utf-8")
    (index,) = _PARTITION.unpack_from(frame, start + length)
    partitions = [PartitionProduceResponse(index)]
    return ProduceResponse([TopicProduceResponse(topic, partition_responses=partitions)])


def _offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    name = request.topics[0].name
    partitions = [ListOffsetsPartitionResponse(offset=0)]
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name, partitions)])


def _receive(peer: socket.socket, room: memoryview) -> memoryview:
    """Exactly as much as there is room."""
    got = 0
    while got < len(room):
        count = peer.recv_into(room[got:])
        if not count:
            raise ConnectionResetError
        got += count
    return room


def main() -> None:
    with socket.create_server((_HOST, 0)) as listener:
        port = listener.getsockname()[1]
        broker = EmptyBroker(port, *map(int, [*sys.argv[1:], "1"][:2]))
        print(f"{_HOST}:{port}", flush=True)
        while True:
            peer, _ = listener.accept()
            Thread(target=broker.serve, args=(peer,), daemon=True).start()


if __name__ == "__main__":
    main()
