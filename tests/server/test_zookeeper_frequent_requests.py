"""What is read and written in C for speed is what the declared records say, whatever a peer sends."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from ottla import compiled_modules
from ottla.coordination.client import Answer
from ottla.coordination.operations import Code, Create, Refusal, SetData
from ottla.coordination.stat import Stat
from ottla.model.errors import Malformed
from ottla.protocol.zookeeper import headers, records
from ottla.protocol.zookeeper.jute import encode
from ottla.protocol.zookeeper.operations import OpCode
from ottla.server.zookeeper import answer_bodies
from ottla.server.zookeeper.changes import ROUTES as CHANGES
from ottla.server.zookeeper.reads import READS
from ottla.server.zookeeper.route import Route

OPEN = [records.Acl(31, "world", "anyone")]
OTHER = [records.Acl(31, "world", "anyone"), records.Acl(1, "digest", "a:b")]
TEXTS = ("/", "/a", "/a/b/c", "/é/日本", "", "/" + "n" * 300)
BLOBS = (b"", b"data", bytes(300), None)
ROUTES: dict[OpCode, Route] = {
    operation: route
    for operation in OpCode
    if (route := READS.get(operation) or CHANGES.get(operation)) is not None and route.frequent is not None
}


def request(operation: OpCode, chance: random.Random) -> bytes:
    path, data = chance.choice(TEXTS), chance.choice(BLOBS)
    body: tuple[Any, ...]
    if operation in (OpCode.CREATE, OpCode.CREATE2):
        acl: list[records.Acl] = chance.choice((OPEN, OPEN, OTHER, []))
        body = records.CreateRequest(path, data, acl, chance.choice((0, 1, 2, 3, 4, 5, 9, -1)))
    elif operation == OpCode.SET_DATA:
        body = records.SetDataRequest(path, data, chance.choice((-1, 0, 5, 2**31 - 1, -(2**31))))
    else:
        body = records.WatchedRequest(path, chance.random() < 0.5)
    return struct.pack(">ii", 7, operation) + encode(body)


def fields(asked: Any) -> tuple[Any, ...]:
    if isinstance(asked, Create):
        flags = (asked.ephemeral, asked.sequential, asked.container, asked.ttl_ms)
        return Create, asked.path, asked.data, tuple(map(tuple, asked.acl)), flags
    if isinstance(asked, SetData):
        return SetData, asked.path, asked.data, asked.version
    if isinstance(asked, Refusal):
        return Refusal, asked.path, asked.code
    return type(asked), asked.path, bool(asked.watch)


def agrees(route: Route, frame: bytes) -> bool:
    """Whether the quick reader took it; it must not differ from the other one, nor take what that refuses."""
    quick: Callable[[Any], Any] | None = route.frequent
    assert quick is not None
    asked = quick(memoryview(frame))
    of_bytes = quick(frame)
    assert (asked is None) is (of_bytes is None)
    assert asked is None or fields(asked) == fields(of_bytes)
    try:
        expected, _ = route.decode(frame, headers.REQUEST_HEADER_BYTES)
    except Malformed:
        assert asked is None
        return False
    assert asked is None or fields(asked) == fields(expected)
    return asked is not None


@pytest.mark.parametrize("operation", ROUTES, ids=lambda operation: operation.name)
def test_a_quick_reader_gives_what_the_declared_one_gives(operation: OpCode) -> None:
    chance = random.Random(operation)
    taken = sum(agrees(ROUTES[operation], request(operation, chance)) for _ in range(300))
    assert (taken > 50) is compiled_modules.are_compiled()


@pytest.mark.parametrize("operation", ROUTES, ids=lambda operation: operation.name)
def test_a_quick_reader_takes_nothing_that_is_cut_or_broken(operation: OpCode) -> None:
    chance = random.Random(operation)
    for _ in range(20):
        frame = request(operation, chance)
        for end in range(headers.REQUEST_HEADER_BYTES, len(frame)):
            agrees(ROUTES[operation], frame[:end])
        for _ in range(30):
            broken = bytearray(frame)
            for _ in range(chance.randrange(1, 4)):
                broken[chance.randrange(8, len(broken))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            agrees(ROUTES[operation], bytes(broken))


LOW, HIGH = -(2**31), 2**31 - 1
STATS = (
    Stat(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11),
    Stat(2**63 - 1, 2**62, 0, 1_700_000_000_000, HIGH, LOW, -1, -(2**63), HIGH, 0, 2**40),
)


@pytest.mark.parametrize("stat", STATS, ids=str)
def test_answers_are_the_bytes_of_the_declared_records(stat: Stat) -> None:
    wire = records.Stat._make(stat)
    assert answer_bodies.of_exists(Answer(Code.OK, 1, stat)) == encode(records.StatResponse(wire))
    for data in BLOBS:
        expected = encode(records.DataResponse(data, wire))
        assert answer_bodies.of_get_data(Answer(Code.OK, 1, (data, stat))) == expected
    for names in ([], ["a"], ["é", "", "n" * 300]):
        expected = encode(records.ChildrenResponse(names, wire))
        assert answer_bodies.of_get_children2(Answer(Code.OK, 1, (names, stat))) == expected


@pytest.mark.parametrize(("xid", "zxid", "error"), [(1, 2, 0), (-1, -1, -101), (HIGH, 2**63 - 1, LOW)])
def test_a_reply_has_the_header_that_is_declared(xid: int, zxid: int, error: int) -> None:
    for body in (b"", b"body", bytes(5_000)):
        reply = answer_bodies.encode_reply(xid, zxid, error, body)
        header = encode(headers.ReplyHeader(xid, zxid, error))
        assert reply == headers.frame(header + body) == headers.encode_reply(xid, zxid, error, body)
