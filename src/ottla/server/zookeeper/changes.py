"""Requests that change znodes: how each becomes an operation of the room, and how its result is encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.coordination.operations import (
    Check,
    Code,
    Delete,
    Multi,
    Operation,
    Result,
    SetAcl,
    SetData,
    StepResult,
    create_of_flags,
)
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.jute import encode, reader_of
from ottla.protocol.zookeeper.multi import WRITES, Step, decode_multi_request, encode_multi_response
from ottla.protocol.zookeeper.operations import REQUESTS, OpCode
from ottla.protocol.zookeeper.records import (
    CreateResponse,
    ErrorResponse,
    PathResponse,
    Stat,
    StatResponse,
)
from ottla.server.zookeeper import frequent_requests
from ottla.server.zookeeper.answer_bodies import of_set_data
from ottla.server.zookeeper.route import Route

_CONTAINER = 4  # as a create flag


def _create_container(path: str, data: bytes | None, acl: Any, flags: int) -> Any:
    return create_of_flags(path, data, acl, flags or _CONTAINER)


_STEPS: dict[OpCode, Callable[..., Any]] = {
    OpCode.CREATE: create_of_flags,
    OpCode.CREATE2: create_of_flags,
    OpCode.CREATE_CONTAINER: _create_container,
    OpCode.CREATE_TTL: create_of_flags,
    OpCode.DELETE: Delete,
    OpCode.SET_DATA: SetData,
    OpCode.SET_ACL: SetAcl,
    OpCode.CHECK: Check,
}
"""What takes the fields of each request as they stand."""


def _decoder(operation: OpCode) -> Callable[[Buffer, int], tuple[Operation, int]]:
    """Made when the first one comes."""
    return lambda frame, position: reader_of(REQUESTS[operation], _STEPS[operation])(frame, position)


def _created(result: Result) -> bytes:
    return encode(_step_record(OpCode.CREATE, result.steps[0]) or ())


def _created_with_stat(result: Result) -> bytes:
    return encode(_step_record(OpCode.CREATE2, result.steps[0]) or ())


def _nothing(_: Result) -> bytes:
    return b""


def _step_record(operation: OpCode, result: StepResult) -> tuple[Any, ...] | None:
    """What the answer to a step carries."""
    match operation:
        case OpCode.CREATE:
            assert result.path is not None
            return PathResponse(result.path)
        case OpCode.CREATE2 | OpCode.CREATE_CONTAINER | OpCode.CREATE_TTL:
            assert result.path is not None
            assert result.stat is not None
            return CreateResponse(result.path, Stat._make(result.stat))
        case OpCode.SET_DATA:
            assert result.stat is not None
            return StatResponse(Stat._make(result.stat))
    return None


ROUTES: dict[int, Route] = {
    OpCode.CREATE: Route(_decoder(OpCode.CREATE), _created, frequent_requests.create),
    OpCode.CREATE2: Route(_decoder(OpCode.CREATE2), _created_with_stat, frequent_requests.create),
    OpCode.CREATE_CONTAINER: Route(_decoder(OpCode.CREATE_CONTAINER), _created_with_stat),
    OpCode.CREATE_TTL: Route(_decoder(OpCode.CREATE_TTL), _created_with_stat),
    OpCode.DELETE: Route(_decoder(OpCode.DELETE), _nothing),
    OpCode.SET_DATA: Route(_decoder(OpCode.SET_DATA), of_set_data, frequent_requests.set_data),
    OpCode.SET_ACL: Route(_decoder(OpCode.SET_ACL), of_set_data),
    OpCode.CHECK: Route(_decoder(OpCode.CHECK), _nothing),
}


# -- several at once -----------------------------------------------------------------------------------------


def decode_multi(frame: Buffer, position: int) -> tuple[Multi, list[OpCode]]:
    """The operation, and what its steps were on the wire, which their answers must say again."""
    steps = decode_multi_request(frame, position, WRITES)
    made = [_STEPS[operation](*record) for operation, record in steps if record is not None]
    return Multi(made), [operation for operation, _ in steps]


def encode_multi(operations: list[OpCode], result: Result) -> bytes:
    """A multi that failed is answered without an error in its header, and with one for each of its steps."""
    if result.code != Code.OK:
        return encode_multi_response(Step(OpCode.ERROR, ErrorResponse(step.code)) for step in result.steps)
    return encode_multi_response(
        Step(operation, _step_record(operation, step))
        for operation, step in zip(operations, result.steps, strict=True)
    )
