"""Requests that change no znode: how each becomes a read of the room, and how its answer is encoded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.coordination import reads
from ottla.coordination.client import Answer
from ottla.coordination.operations import Code
from ottla.coordination.reads import Read
from ottla.protocol.primitives import Buffer
from ottla.protocol.zookeeper.jute import encode, reader_of, writer
from ottla.protocol.zookeeper.multi import READS as READS_OF_MULTI
from ottla.protocol.zookeeper.multi import Step, decode_multi_request, encode_multi_response
from ottla.protocol.zookeeper.operations import REQUESTS, OpCode
from ottla.protocol.zookeeper.records import (
    AclResponse,
    ClientInfo,
    CountResponse,
    DataResponse,
    ErrorResponse,
    PathResponse,
    TextsResponse,
    WhoAmIResponse,
)
from ottla.server.zookeeper import answer_bodies, frequent_requests
from ottla.server.zookeeper.route import Route


def _routes() -> dict[int, Route]:
    return {
        OpCode.EXISTS: Route(
            _decoder(OpCode.EXISTS, reads.Exists), answer_bodies.of_exists, frequent_requests.exists
        ),
        OpCode.GET_DATA: Route(
            _decoder(OpCode.GET_DATA, reads.GetData), answer_bodies.of_get_data, frequent_requests.get_data
        ),
        OpCode.GET_CHILDREN: Route(
            _decoder(OpCode.GET_CHILDREN, reads.GetChildren),
            lambda a: encode(TextsResponse(a.value[0])),
            frequent_requests.get_children,
        ),
        OpCode.GET_CHILDREN2: Route(
            _decoder(OpCode.GET_CHILDREN2, reads.GetChildren),
            answer_bodies.of_get_children2,
            frequent_requests.get_children,
        ),
        OpCode.GET_ACL: Route(_decoder(OpCode.GET_ACL, reads.GetAcl), lambda a: writer(AclResponse)(a.value)),
        OpCode.SYNC: Route(_decoder(OpCode.SYNC, reads.Sync), lambda a: encode(PathResponse(a.value))),
        OpCode.GET_EPHEMERALS: Route(
            _decoder(OpCode.GET_EPHEMERALS, reads.GetEphemerals), lambda a: encode(TextsResponse(a.value))
        ),
        OpCode.GET_ALL_CHILDREN_NUMBER: Route(
            _decoder(OpCode.GET_ALL_CHILDREN_NUMBER, reads.CountDescendants),
            lambda a: encode(CountResponse(a.value)),
        ),
        OpCode.WHO_AM_I: Route(
            lambda _, position: (reads.WhoAmI(), position),
            lambda a: encode(WhoAmIResponse([ClientInfo(*identity) for identity in a.value])),
        ),
        OpCode.MULTI_READ: Route(_decode_multi_read, _encode_multi_read),
        # ZooKeeper answers this one with a code in the body too.
        OpCode.ADD_WATCH: Route(
            _decoder(OpCode.ADD_WATCH, reads.AddWatch), lambda _: encode(ErrorResponse(Code.OK))
        ),
        OpCode.CHECK_WATCHES: Route(_decoder(OpCode.CHECK_WATCHES, reads.CheckWatches), _nothing),
        OpCode.REMOVE_WATCHES: Route(_decoder(OpCode.REMOVE_WATCHES, reads.RemoveWatches), _nothing),
        OpCode.SET_WATCHES: Route(_decoder(OpCode.SET_WATCHES, reads.SetWatches), _nothing),
        OpCode.SET_WATCHES2: Route(_decoder(OpCode.SET_WATCHES2, reads.SetWatches), _nothing),
    }


def _decoder(operation: OpCode, make: Callable[..., Read]) -> Callable[[Buffer, int], tuple[Read, int]]:
    """For a read that takes the fields of its request as they stand; made when the first one comes."""
    return lambda frame, position: reader_of(REQUESTS[operation], make)(frame, position)


def _nothing(_: Answer) -> bytes:
    return b""


def _decode_multi_read(frame: Buffer, position: int) -> tuple[Read, int]:
    make: dict[OpCode, Callable[..., Any]] = {
        OpCode.GET_DATA: reads.GetData,
        OpCode.GET_CHILDREN: reads.GetChildren,
    }
    steps = decode_multi_request(frame, position, READS_OF_MULTI)
    made = [make[operation](*record) for operation, record in steps if record is not None]
    return reads.MultiRead(made), len(frame)


def _encode_multi_read(answer: Answer) -> bytes:
    return encode_multi_response(_result_step(each) for each in answer.value)


def _result_step(answer: Answer) -> Step:
    if answer.code != Code.OK:
        return Step(OpCode.ERROR, ErrorResponse(answer.code))
    first, stat = answer.value
    if isinstance(first, list):
        return Step(OpCode.GET_CHILDREN, TextsResponse(first))
    return Step(OpCode.GET_DATA, DataResponse(first, stat))


READS = _routes()
