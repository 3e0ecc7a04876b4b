"""Containers go when they are empty again, nodes with a TTL when nobody used them for so long."""

from __future__ import annotations

import pytest

from coordination.served import Served
from ottla.coordination import upkeep
from ottla.coordination.acls import OPEN_ACL
from ottla.coordination.operations import Code, Create, Delete, Refusal, SetData, create_of_flags
from ottla.coordination.owners import CONTAINER, TTL_MS_MAX, ttl_ms, ttl_owner
from ottla.coordination.reads import Exists, GetChildren

PASS_MS = upkeep.PASS_MS + 1_000


def test_a_container_goes_with_its_last_child() -> None:
    served = Served()
    client = served.client(timeout_ms=40_000)
    client.do(Create("/c", container=True))
    client.do(Create("/c/1"))
    client.do(Create("/c/2"))
    assert client.ask(Exists("/c")).ephemeral_owner == CONTAINER
    client.do(Delete("/c/1"))
    served.pass_time(PASS_MS)
    assert client.ask(Exists("/c"))
    client.do(Delete("/c/2"))
    zxid = served.service.zxid
    served.pass_time(PASS_MS)
    assert client.ask(Exists("/c")) is Code.NO_NODE
    assert served.service.zxid == zxid + 1  # as a transaction
    assert served.restarted().coordination.exists("/c") is None


def test_a_container_that_was_never_used_stays_for_five_minutes() -> None:
    served = Served()
    served.client().do(Create("/c", container=True))
    served.pass_time(4 * 60_000)
    assert served.coordination.exists("/c") is not None
    served.pass_time(61_000 + PASS_MS)
    assert served.coordination.exists("/c") is None


def test_a_node_with_a_ttl_goes_when_it_was_neither_changed_nor_has_children() -> None:
    served = Served()
    client = served.client(timeout_ms=40_000)
    created = client.do(Create("/t-", ttl_ms=10_000, sequential=True)).steps[0]
    path, stat = created.path, created.stat
    assert path is not None
    assert stat is not None
    assert stat.ephemeral_owner == ttl_owner(10_000) == -(2**56) + 10_000
    served.pass_time(8_000)
    client.do(SetData(path, b"used"))
    served.pass_time(8_000)
    client.do(Create(f"{path}/child"))
    served.pass_time(30_000)
    assert client.ask(GetChildren(path))[0] == ["child"]
    client.do(Delete(f"{path}/child"))
    served.pass_time(PASS_MS)
    assert client.ask(Exists(path)) is Code.NO_NODE


def test_many_nodes_are_looked_at_over_several_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "_NODES_PER_TICK", 10)
    served = Served()
    for number in range(25):
        served.coordination.submit(Create(f"/{number}", ttl_ms=1), lambda _: None)
    served.coordination.sync()
    left = []
    for _ in range(6):
        served.clock.advance(500)
        served.service.tick(served.clock.monotonic_ms())
        left.append(len(served.coordination.tree.fading))
    assert left == [25, 15, 5, 0, 0, 0]


@pytest.mark.parametrize(
    ("flags", "ttl", "created"),
    [
        (0, -1, Create("/n", b"")),
        (1, -1, Create("/n", b"", ephemeral=True)),
        (2, -1, Create("/n", b"", sequential=True)),
        (3, -1, Create("/n", b"", ephemeral=True, sequential=True)),
        (4, -1, Create("/n", b"", container=True)),
        (5, 7, Create("/n", b"", ttl_ms=7)),
        (6, TTL_MS_MAX, Create("/n", b"", sequential=True, ttl_ms=TTL_MS_MAX)),
        (7, -1, None),
        (-1, -1, None),
        (0, 7, None),
        (5, -1, None),
        (5, 0, None),
        (6, TTL_MS_MAX + 1, None),
    ],
)
def test_flags_of_the_wire(flags: int, ttl: int, created: Create | None) -> None:
    expected = created or Refusal(Code.BAD_ARGUMENTS, "/n")
    assert create_of_flags("/n", b"", OPEN_ACL, flags, ttl) == expected


def test_only_a_ttl_is_a_ttl() -> None:
    assert [ttl_ms(owner) for owner in (0, CONTAINER, 1 << 56, ttl_owner(1), ttl_owner(TTL_MS_MAX))] == [
        None,
        None,
        None,
        1,
        TTL_MS_MAX,
    ]


def test_sequence_numbers_go_on_from_the_lowest_behind_the_highest() -> None:
    client = Served().client()
    client.do(Create("/q"))
    client.served.coordination.tree.nodes["/q"].child_creations = 2**31 - 1
    names = [client.do(Create("/q/n", sequential=True)).steps[0].path for _ in range(3)]
    assert names == ["/q/n2147483647", "/q/n-2147483648", "/q/n-2147483647"]
    assert client.ask(Exists("/q")).num_children == 3
