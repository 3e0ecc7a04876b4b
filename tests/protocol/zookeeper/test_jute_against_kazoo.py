"""Our records and kazoo's own serialisation say the same, in both directions."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from kazoo.protocol import serialization as kazoo
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, Id

from ottla.protocol.zookeeper import headers, multi, records
from ottla.protocol.zookeeper.jute import decode, encode
from ottla.protocol.zookeeper.operations import REQUESTS, RESPONSES, OpCode

PATHS = ["/", "/a", "/ünï/cødé/日本", "/long" * 50]
DATA = [None, b"", b"x", bytes(range(256)) * 40]
ACLS = [(31, "world", "anyone"), (1, "digest", "me:abc="), (5, "ip", "127.0.0.1/8")]


def kazoo_acls(count: int) -> list[ACL]:
    return [ACL(perms, Id(scheme, who)) for perms, scheme, who in ACLS[:count]]


def our_acls(count: int) -> list[records.Acl]:
    return [records.Acl(*acl) for acl in ACLS[:count]]


def some_stat(seed: int) -> tuple[int, ...]:
    chance = random.Random(seed)
    longs = [chance.randrange(-(2**63), 2**63) for _ in range(6)]
    ints = [chance.randrange(-(2**31), 2**31) for _ in range(5)]
    return (*longs[:4], *ints[:3], longs[4], *ints[3:], longs[5])


def request_pairs() -> list[tuple[Any, OpCode, Any]]:
    """kazoo's request, the operation, and ours."""
    pairs: list[tuple[Any, OpCode, Any]] = []
    for path in PATHS:
        for watch in (False, True):
            asked = records.WatchedRequest(path, watch)
            pairs += [
                (kazoo.Exists(path, watch), OpCode.EXISTS, asked),
                (kazoo.GetData(path, watch), OpCode.GET_DATA, asked),
                (kazoo.GetChildren(path, watch), OpCode.GET_CHILDREN, asked),
                (kazoo.GetChildren2(path, watch), OpCode.GET_CHILDREN2, asked),
            ]
        for version in (-1, 0, 2**31 - 1):
            versioned = records.VersionedRequest(path, version)
            pairs += [
                (kazoo.Delete(path, version), OpCode.DELETE, versioned),
                (kazoo.CheckVersion(path, version), OpCode.CHECK, versioned),
                (
                    kazoo.SetACL(path, kazoo_acls(2), version),
                    OpCode.SET_ACL,
                    records.SetAclRequest(path, our_acls(2), version),
                ),
            ]
            pairs += [
                (
                    kazoo.SetData(path, data, version),
                    OpCode.SET_DATA,
                    records.SetDataRequest(path, data, version),
                )
                for data in DATA
            ]
        for data in DATA:
            for count in range(4):
                created = records.CreateRequest(path, data, our_acls(count), count)
                pairs += [
                    (kazoo.Create(path, data, kazoo_acls(count), count), OpCode.CREATE, created),
                    (kazoo.Create2(path, data, kazoo_acls(count), count), OpCode.CREATE2, created),
                ]
        pairs += [
            (kazoo.GetACL(path), OpCode.GET_ACL, records.PathRequest(path)),
            (kazoo.Sync(path), OpCode.SYNC, records.PathRequest(path)),
            (kazoo.Auth(0, "digest", "me:you"), OpCode.AUTH, records.AuthRequest(0, "digest", b"me:you")),
            (kazoo.SASL(b"token"), OpCode.SASL, records.SaslToken(b"token")),
        ]
    return pairs


def test_requests_are_the_same_bytes_both_ways() -> None:
    for theirs, operation, ours in request_pairs():
        data = bytes(theirs.serialize())
        assert theirs.type == operation
        assert encode(ours) == data
        assert decode(REQUESTS[operation], memoryview(data)) == ours


@pytest.mark.parametrize("seed", range(20))
def test_kazoo_reads_our_answers(seed: int) -> None:
    numbers = some_stat(seed)
    stat, theirs = records.Stat(*numbers), ZnodeStat._make(numbers)
    names = [path.strip("/") or "root" for path in PATHS[: seed % 5]]
    data = DATA[seed % len(DATA)]
    assert kazoo.GetData.deserialize(encode(records.DataResponse(data, stat)), 0) == (data, theirs)
    assert kazoo.SetData.deserialize(encode(records.StatResponse(stat)), 0) == theirs
    assert kazoo.Create2.deserialize(encode(records.CreateResponse("/a", stat)), 0) == ("/a", theirs)
    assert kazoo.GetChildren.deserialize(encode(records.TextsResponse(names)), 0) == names
    assert kazoo.GetChildren2.deserialize(encode(records.ChildrenResponse(names, stat)), 0) == (names, theirs)
    answer = encode(records.AclResponse(our_acls(seed % 4), stat))
    assert kazoo.GetACL.deserialize(answer, 0) == (kazoo_acls(seed % 4), theirs)
    event = encode(records.WatcherEvent(3, 3, "/a"))
    assert kazoo.Watch.deserialize(event, 0) == (kazoo.Watch(3, 3, "/a"), len(event))


def test_reply_header_is_read_by_kazoo() -> None:
    reply = headers.encode_reply(7, 2**40, -101, b"rest")
    assert reply[:4] == struct.pack(">i", len(reply) - 4)
    assert kazoo.ReplyHeader.deserialize(reply, 4) == (kazoo.ReplyHeader(7, 2**40, -101), 20)


@pytest.mark.parametrize("read_only", [False, True])
def test_connect_both_ways(read_only: bool) -> None:
    theirs = kazoo.Connect(0, 5, 10_000, 77, b"\1" * 16, read_only).serialize()
    request = headers.ConnectRequest(0, 5, 10_000, 77, b"\1" * 16)
    assert headers.decode_connect_request(memoryview(bytes(theirs))) == (request, read_only)
    assert headers.encode_connect_request(request, read_only) == headers.frame(bytes(theirs))
    assert headers.decode_connect_request(bytes(theirs)[:-1]) == (request, None)


@pytest.mark.parametrize("with_read_only", [False, True])
def test_connect_answer_is_read_by_kazoo(with_read_only: bool) -> None:
    response = headers.ConnectResponse(0, 10_000, 77, b"\2" * 16)
    data = headers.encode_connect_response(response, with_read_only)
    answer, position = kazoo.Connect.deserialize(data, 4)
    assert (answer.time_out, answer.session_id, answer.passwd, answer.read_only) == (
        10_000, 77, b"\2" * 16, False,
    )  # fmt: skip
    assert position == len(data)
    assert headers.decode_connect_response(data[4:]) == response


def test_multi_both_ways() -> None:
    pairs = [
        pair
        for pair in request_pairs()
        if pair[1] in multi.WRITES and not isinstance(pair[0], kazoo.Create2)  # kazoo has it alone only
    ]
    theirs = bytes(kazoo.Transaction([theirs for theirs, _, _ in pairs]).serialize())
    steps = [multi.Step(operation, ours) for _, operation, ours in pairs]
    assert multi.encode_multi_request(steps) == theirs
    assert multi.decode_multi_request(memoryview(theirs), 0, multi.WRITES) == steps


def test_multi_answer_is_read_by_kazoo() -> None:
    stat = records.Stat(*some_stat(1))
    results = [
        multi.Step(OpCode.CREATE, records.PathResponse("/a")),
        multi.Step(OpCode.SET_DATA, records.StatResponse(stat)),
        multi.Step(OpCode.DELETE, None),
        multi.Step(OpCode.CHECK, None),
        multi.Step(OpCode.ERROR, records.ErrorResponse(-101)),
    ]
    data = multi.encode_multi_response(results)
    read = kazoo.Transaction.deserialize(data, 0)
    assert read[:2] == ["/a", ZnodeStat._make(stat)]
    assert read[2:4] == [True, True]
    assert type(read[4]).__name__ == "NoNodeError"
    assert multi.decode_multi_response(data, 0) == results


def test_every_operation_with_an_answer_can_be_asked() -> None:
    asked_with_a_header_only = {OpCode.WHO_AM_I}
    assert set(RESPONSES) <= set(REQUESTS) | asked_with_a_header_only
