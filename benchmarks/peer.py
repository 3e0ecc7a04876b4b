"""The least a client can be: one blocking connection that speaks the protocol. For benchmarks."""

from __future__ import annotations

import socket
import struct
from typing import Any

from ottla.protocol import apis
from ottla.protocol.fields import Message
from ottla.protocol.headers import decode_response, encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.metadata import MetadataRequest


class Peer:
    """The least a client can be."""

    def __init__(self, address: str, client_id: str = "bench") -> None:
        self.client_id = client_id
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=30)

    def greet(self) -> None:
        self.call(apis.API_VERSIONS, 3, ApiVersionsRequest("ottla-bench", "1"))
        self.call(apis.METADATA, 9, MetadataRequest(topics=None))

    def send(self, api: apis.Api, version: int, message: Message) -> None:
        chunks = encode_request(api, version, 1, self.client_id, message)
        self.socket.sendall(b"".join(chunks))  # type: ignore[arg-type]

    def call(self, api: apis.Api, version: int, message: Message) -> Any:
        self.send(api, version, message)
        return self.receive(api, version)

    def receive(self, api: apis.Api, version: int) -> Any:
        (size,) = struct.unpack(">i", self._read(4))
        return decode_response(api, version, self._read(size))[1]

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            assert part, "the broker hung up"
            data += part
        return data
