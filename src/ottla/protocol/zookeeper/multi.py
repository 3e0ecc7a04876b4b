"""The bodies of multi and multiRead: each step or result behind a header of its own, and one at the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.model.problems import Malformed
from ottla.model.values import NamedTuple
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.jute import Boolean, Int, encode, reader
from ottla.protocol.zookeeper.operations import REQUESTS, RESPONSES, OpCode
from ottla.protocol.zookeeper.records import ErrorResponse

WRITES = frozenset(
    {
        OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER, OpCode.CREATE_TTL, OpCode.DELETE,
        OpCode.SET_DATA, OpCode.CHECK,
    }
)  # fmt: skip
READS = frozenset({OpCode.GET_DATA, OpCode.GET_CHILDREN})
"""What may stand in a multi, and in a multiRead."""


class MultiHeader(NamedTuple):
    type: Int
    done: Boolean
    error: Int


class Step(NamedTuple):
    """One operation of a request, or one result of an answer."""

    operation: OpCode
    record: tuple[Any, ...] | None  # the request's or the response's; None where there is nothing to carry


_END = encode(MultiHeader(-1, True, -1))
_HEADER_BYTES = len(_END)


def decode_multi_request(data: Buffer, position: int, allowed: frozenset[OpCode]) -> list[Step]:
    steps: list[Step] = []
    read_header = reader(MultiHeader)
    data = bytes(data)
    while True:
        header, position = read_header(data, position)
        if header.done:
            return steps
        if header.type not in allowed:
            raise Malformed(f"operation {header.type} in a multi at byte {position - _HEADER_BYTES}")
        if len(steps) == REQUEST_ELEMENTS_MAX:
            raise Malformed(f"a multi of more than {REQUEST_ELEMENTS_MAX} operations")
        operation = OpCode(header.type)
        record, position = reader(REQUESTS[operation])(data, position)
        steps.append(Step(operation, record))


def encode_multi_request(steps: Iterable[Step]) -> bytes:
    parts = [
        encode(MultiHeader(step.operation, False, -1)) + encode(step.record)
        for step in steps
        if step.record is not None
    ]
    return b"".join((*parts, _END))


def decode_multi_response(data: Buffer, position: int) -> list[Step]:
    results: list[Step] = []
    data = bytes(data)
    while True:
        header, position = reader(MultiHeader)(data, position)
        if header.done:
            return results
        operation = OpCode(header.type)
        record: tuple[Any, ...] | None = None
        if operation is OpCode.ERROR:
            record, position = reader(ErrorResponse)(data, position)
        elif operation in RESPONSES:
            record, position = reader(RESPONSES[operation])(data, position)
        results.append(Step(operation, record))


def encode_multi_response(results: Iterable[Step]) -> bytes:
    """A result of type ERROR carries an ErrorResponse; its code is in its header too."""
    parts = []
    for operation, record in results:
        error = record.code if isinstance(record, ErrorResponse) else 0
        parts.append(encode(MultiHeader(operation, False, error)))
        if record is not None:
            parts.append(encode(record))
    return b"".join((*parts, _END))
