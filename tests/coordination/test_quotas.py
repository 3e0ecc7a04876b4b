"""Quotas are counted where ZooKeeper counts them; a hard limit holds, a soft one is complained of."""

from __future__ import annotations

import pytest

from coordination.served import Served, Visitor
from ottla.coordination.operations import Code, Create, Delete, Multi, SetData
from ottla.coordination.reads import Exists, GetData

LIMITS, USAGE = "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats"


def limited(limits: bytes) -> Visitor:
    """A client of a service with a quota on /a, where two nodes with five bytes are already."""
    client = Served().client()
    assert client.do(
        Multi(
            [
                Create("/a", b"123"),
                Create("/a/b", b"45"),
                Create("/other", b"6"),
                Create("/zookeeper/quota/a"),
                Create(LIMITS, limits),
                Create(USAGE, b"count=0,bytes=0"),
            ]
        )
    ).ok
    return client


def usage(client: Visitor) -> bytes:
    data, stat = client.ask(GetData(USAGE))
    assert stat.data_length == len(data)
    return bytes(data)


def test_usage_follows_every_change_below() -> None:
    client = limited(b"count=-1,bytes=-1")
    assert usage(client) == b"count=2,bytes=5"
    client.do(Create("/a/c", b"678"))
    client.do(SetData("/a", None))
    client.do(Create("/ab", b"not below /a"))
    client.do(SetData("/other", bytes(100)))
    assert usage(client) == b"count=3,bytes=5"
    client.do(Multi([Delete("/a/b"), Delete("/a/c")]))
    assert usage(client) == b"count=1,bytes=0"


def test_usage_survives_a_restart_and_a_snapshot() -> None:
    client = limited(b"count=5,bytes=-1")
    client.do(Create("/a/c", bytes(10)))
    after = Served(client.served.files, client.served.clock, snapshot_log_bytes=1)
    back = after.client()
    assert usage(back) == b"count=3,bytes=15"
    back.do(Delete("/a/c"))
    again = Served(client.served.files, client.served.clock).client()
    assert usage(again) == b"count=2,bytes=5"
    assert again.served.coordination.tree.quotas.prefixes == {"/a"}


@pytest.mark.parametrize(
    ("limits", "operation", "code"),
    [
        (b"count=-1,bytes=-1=;countHardLimit=3", Create("/a/c"), Code.OK),
        (b"count=-1,bytes=-1=;countHardLimit=2", Create("/a/c"), Code.QUOTA_EXCEEDED),
        (b"count=-1,bytes=-1=;countHardLimit=2", SetData("/a", bytes(1_000)), Code.OK),
        (b"count=-1,bytes=-1=;countHardLimit=1", Delete("/a/b"), Code.OK),
        (b"count=-1,bytes=-1=;byteHardLimit=5", SetData("/a", b"1234"), Code.QUOTA_EXCEEDED),
        (b"count=-1,bytes=-1=;byteHardLimit=5", SetData("/a", b"12"), Code.OK),
        (b"count=-1,bytes=-1=;byteHardLimit=5", Create("/a/c", b"1"), Code.QUOTA_EXCEEDED),
        (b"count=-1,bytes=-1=;byteHardLimit=5", Create("/a/c"), Code.OK),
        (b"count=1,bytes=1", Create("/a/c", b"1"), Code.OK),
        (b"what is this, bytes=many;countHardLimit", Create("/a/c", b"1"), Code.OK),
        (b"count=-1,bytes=-1=;countHardLimit=0;byteHardLimit=0", Create("/b", b"1"), Code.OK),
        (
            b"count=-1,bytes=-1=;countHardLimit=3",
            Multi([Create("/a/c"), Create("/a/d")]),
            Code.QUOTA_EXCEEDED,
        ),
        (
            b"count=-1,bytes=-1=;countHardLimit=3",
            Multi([Create("/a/c"), Delete("/a/c"), Create("/a/d")]),
            Code.OK,
        ),
    ],
)
def test_limits(limits: bytes, operation: Create, code: Code) -> None:
    client = limited(limits)
    before = usage(client)
    assert client.do(operation).code is code
    if code is not Code.OK:
        assert usage(client) == before


def test_passing_a_soft_limit_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client = limited(b"count=2,bytes=-1")
    for name in "cde":
        client.do(Create(f"/a/{name}"))
    assert [record.getMessage() for record in caplog.records] == [
        "the quota of /a is exceeded: count 3, limit 2"
    ]


def test_a_quota_goes_with_its_limits_node() -> None:
    client = limited(b"count=-1,bytes=-1=;countHardLimit=2")
    client.do(Delete(LIMITS))
    assert client.do(Create("/a/c")).ok


def test_reserved_nodes_are_there_and_stay() -> None:
    client = Served().client()
    for path in ("/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"):
        assert client.do(Delete(path)).code is Code.BAD_ARGUMENTS
    assert client.ask(Exists("/zookeeper")).num_children == 2
    assert client.do(SetData("/zookeeper/config", b"x")).code is Code.NO_AUTH
    # As in ZooKeeper, where the reserved children were never created.
    assert (client.ask(Exists("/")).cversion, client.ask(Exists("/zookeeper")).cversion) == (-1, -2)
