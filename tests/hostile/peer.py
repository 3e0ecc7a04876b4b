"""A raw peer of a broker: sends any bytes, and speaks the protocol where a test needs an answer."""

from __future__ import annotations

import itertools
import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ottla.protocol import apis
from ottla.protocol.apis import Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_response, encode_request
from ottla.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.batch import header_bytes, read_header
from ottla.records.content import Record, build_batch

_correlation_ids = itertools.count(1)


class Closed(Exception):
    """The broker ended the connection."""


def request_bytes(
    api: Api,
    version: int,
    message: Message,
    *,
    client_id: str | None = "hostile",
    correlation_id: int | None = None,
) -> bytes:
    """A whole request with its length in front."""
    if correlation_id is None:
        correlation_id = next(_correlation_ids)
    chunks = encode_request(api, version, correlation_id, client_id, message)
    return b"".join(chunks)  # type: ignore[arg-type]  # no file ranges in requests


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def produce_request(
    topic: str, records: bytes | None, *, acks: int = 1, partition: int = 0, timeout_ms: int = 10_000
) -> ProduceRequest:
    data = PartitionProduceData(partition, records)
    return ProduceRequest(None, acks, timeout_ms, (TopicProduceData(topic, partition_data=(data,)),))


def fetch_request(
    topic: str, offset: int, *, bytes_max: int = 1 << 20, min_bytes: int = 1, wait_ms: int = 0
) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=bytes_max,
        topics=(FetchTopic(topic, partitions=(asked,)),),
    )


def batch_of(values: Sequence[bytes], *, codec: int = 0) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    return build_batch([Record(at, now_ms, b"key", value) for at, value in enumerate(values)], codec=codec)


def batch_with_content(content: bytes, record_count: int, *, codec: int = 0) -> bytes:
    """A batch whose header and checksum are right, whatever its records are."""
    header = read_header(batch_of([b""]))
    header = header._replace(
        attributes=codec, record_count=record_count, last_offset_delta=max(0, record_count - 1)
    )
    return bytes(header_bytes(header, content)) + content


class Peer:
    def __init__(
        self, address: str, *, timeout_seconds: float = 20, receive_buffer: int | None = None
    ) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout_seconds)
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self.socket.getsockname()[1]

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    # -- bytes ---------------------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (ConnectionError, TimeoutError) as error:
            raise Closed(str(error)) from error

    def receive(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            try:
                part = self.socket.recv(min(count - len(data), 1 << 20))
            except ConnectionError as error:
                raise Closed(str(error)) from error
            if not part:
                raise Closed(f"after {len(data)} of {count} bytes")
            data += part
        return bytes(data)

    def frame(self) -> bytes:
        return self.receive(struct.unpack(">i", self.receive(4))[0])

    def exchange(self, data: bytes) -> bytes:
        self.send(data)
        return self.frame()

    def is_closed_by_broker(self) -> bool:
        """Waits for the end of the connection; False when bytes come instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    # -- requests ------------------------------------------------------------------------------------------

    def ask(self, api: Api, version: int, message: Message) -> Any:
        self.send(request_bytes(api, version, message))
        _, response = decode_response(api, version, self.frame())
        return response

    def create_topic(self, name: str, *, partitions: int = 1, **configs: str) -> None:
        settings = tuple(CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items())
        topic = CreatableTopic(name, num_partitions=partitions, replication_factor=1, configs=settings)
        response = self.ask(apis.CREATE_TOPICS, 5, CreateTopicsRequest((topic,), timeout_ms=30_000))
        assert response.topics[0].error_code == 0, response

    def produce(self, topic: str, records: bytes, *, acks: int = 1) -> tuple[int, int]:
        """(error code, base offset)"""
        response = self.ask(apis.PRODUCE, 8, produce_request(topic, records, acks=acks))
        told = response.responses[0].partition_responses[0]
        return told.error_code, told.base_offset

    def fetch(self, topic: str, offset: int, *, bytes_max: int = 1 << 20, wait_ms: int = 0) -> bytes:
        request = fetch_request(topic, offset, bytes_max=bytes_max, wait_ms=wait_ms)
        told = self.ask(apis.FETCH, 11, request).responses[0].partitions[0]
        assert told.error_code == 0, told
        return bytes(told.records)

    def end_offset(self, topic: str) -> int:
        asked = ListOffsetsTopic(topic, (ListOffsetsPartition(0, timestamp=-1),))
        response = self.ask(apis.LIST_OFFSETS, 1, ListOffsetsRequest(topics=(asked,)))
        told = response.topics[0].partitions[0]
        assert told.error_code == 0, told
        return int(told.offset)
