"""Persistent and recursive watches, their removal, and what a client hears of when it comes back."""

from __future__ import annotations

import pytest

from coordination.served import Served, Visitor
from ottla.coordination import reads
from ottla.coordination.acls import OPEN_ACL, Acl, Identity, Perms
from ottla.coordination.operations import Code, Create, Delete, Multi, SetAcl, SetData
from ottla.coordination.reads import (
    AddWatch,
    CheckWatches,
    Exists,
    GetChildren,
    GetData,
    RemoveWatches,
    SetWatches,
)

CHILDREN, DATA, ANY, PERSISTENT, RECURSIVE = 1, 2, 3, 4, 5
CREATED, DELETED, CHANGED = "NODE_CREATED", "NODE_DELETED", "NODE_DATA_CHANGED"
CHILDREN_CHANGED = "NODE_CHILDREN_CHANGED"


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
def watching(served: Served) -> Visitor:
    return served.client()


@pytest.fixture
def changing(served: Served) -> Visitor:
    client = served.client()
    client.do(Multi([Create("/a"), Create("/a/b"), Create("/x")]))
    return client


def test_a_persistent_watch_hears_every_time(watching: Visitor, changing: Visitor) -> None:
    assert watching.ask(AddWatch("/a", 0)) is None
    for operation in (SetData("/a", b"1"), SetData("/a", b"2"), Create("/a/c"), SetData("/a/c", b"")):
        changing.do(operation)
    changing.do(Multi([Delete("/a/b"), Delete("/a/c"), Delete("/a"), Create("/a")]))
    assert watching.events() == [
        (CHANGED, "/a"),
        (CHANGED, "/a"),
        (CHILDREN_CHANGED, "/a"),
        (CHILDREN_CHANGED, "/a"),
        (CHILDREN_CHANGED, "/a"),
        (DELETED, "/a"),
        (CREATED, "/a"),
    ]


def test_a_recursive_watch_hears_of_everything_below_and_never_of_children(
    watching: Visitor, changing: Visitor
) -> None:
    watching.ask(AddWatch("/a", 1))
    watching.ask(AddWatch("/", 1))  # the same event once, however many watches it meets
    changing.do(Multi([Create("/a/c"), SetData("/a/b", b""), Delete("/a/c"), SetData("/x", b"")]))
    assert watching.events() == [(CREATED, "/a/c"), (CHANGED, "/a/b"), (DELETED, "/a/c"), (CHANGED, "/x")]


def test_one_shot_and_persistent_watches_of_a_node_fire_together_once(
    watching: Visitor, changing: Visitor
) -> None:
    watching.ask(AddWatch("/a", 0))
    watching.ask(GetData("/a", watch=True))
    for data in (b"1", b"2"):
        changing.do(SetData("/a", data))
    assert watching.events() == [(CHANGED, "/a")] * 2


def test_a_watch_is_set_by_a_read_that_finds_the_node_and_by_exists_always(
    watching: Visitor, changing: Visitor
) -> None:
    assert watching.ask(GetData("/none", watch=True)) is Code.NO_NODE
    assert watching.ask(GetChildren("/none", watch=True)) is Code.NO_NODE
    changing.do(Multi([Create("/none"), Delete("/none")]))
    assert watching.events() == []
    assert watching.ask(Exists("/none", watch=True)) is Code.NO_NODE
    changing.do(Multi([Create("/none"), SetData("/none", b"")]))
    assert watching.events() == [(CREATED, "/none")]


SETTERS = {
    CHILDREN: GetChildren("/a", watch=True),
    DATA: GetData("/a", watch=True),
    PERSISTENT: AddWatch("/a", 0),
    RECURSIVE: AddWatch("/a", 1),
}


@pytest.mark.parametrize("kind", SETTERS)
def test_a_watch_is_checked_and_removed_by_its_type(watching: Visitor, changing: Visitor, kind: int) -> None:
    watching.ask(SETTERS[kind])
    for other in {*SETTERS} - {kind}:
        assert watching.ask(CheckWatches("/a", other)) is Code.NO_WATCHER
        assert watching.ask(RemoveWatches("/a", other)) is Code.NO_WATCHER
    assert changing.ask(RemoveWatches("/a", ANY)) is Code.NO_WATCHER  # it is not theirs
    assert watching.ask(CheckWatches("/a", kind)) is None
    assert watching.ask(CheckWatches("/a", ANY)) is None
    assert watching.ask(RemoveWatches("/a", kind)) is None
    assert watching.ask(CheckWatches("/a", ANY)) is Code.NO_WATCHER
    changing.do(Multi([SetData("/a", b""), Create("/a/c")]))
    assert watching.events() == []
    assert watching.served.service.statistics().watches == 0


def test_any_removes_all(watching: Visitor, changing: Visitor) -> None:
    for setter in SETTERS.values():
        watching.ask(setter)
    assert watching.served.service.watched_paths() == {"/a": {watching.session.id}}
    assert watching.ask(RemoveWatches("/a", ANY)) is None
    assert watching.served.service.watched_paths() == {}


def test_bad_modes_and_types_are_refused(watching: Visitor, changing: Visitor) -> None:
    assert watching.ask(AddWatch("/a", 2)) is Code.BAD_ARGUMENTS
    assert watching.ask(RemoveWatches("/a", 0)) is Code.BAD_ARGUMENTS
    assert watching.ask(CheckWatches("/a", 6)) is Code.BAD_ARGUMENTS


def test_the_watches_of_a_connection_go_with_it(watching: Visitor, changing: Visitor) -> None:
    for setter in SETTERS.values():
        watching.ask(setter)
    watching.served.service.disconnect(watching.client)
    changing.do(SetData("/a", b""))
    assert watching.events() == []
    statistics = watching.served.service.statistics()
    assert (statistics.watches, statistics.watched_paths, statistics.watching_clients) == (0, 0, 0)


def test_who_may_not_read_a_node_hears_nothing_of_it(served: Served, changing: Visitor) -> None:
    secret = [Acl(Perms.ALL, "digest", "alice:x"), Acl(Perms.DELETE | Perms.WRITE, "world", "anyone")]
    stranger, alice = served.client(), served.client(Identity("digest", "alice:x"))
    for client in (stranger, alice):
        client.ask(AddWatch("/", 1))
    changing.do(Create("/a/secret", acl=secret))
    changing.do(SetData("/a/secret", b""))
    changing.do(Delete("/a/secret"))
    assert stranger.events() == []
    assert alice.events() == [(CREATED, "/a/secret"), (CHANGED, "/a/secret"), (DELETED, "/a/secret")]
    changing.do(SetAcl("/a", OPEN_ACL))
    assert alice.events() == []  # a change of the list is no event


def test_a_client_that_was_away_hears_what_it_missed(watching: Visitor, changing: Visitor) -> None:
    changing.do(Multi([Create("/gone"), Create("/same"), Create("/parent"), Create("/quiet")]))
    seen_zxid = changing.do(SetData("/same", b"seen")).zxid
    changing.do(Multi([Delete("/gone"), SetData("/a", b"2"), Create("/new"), Create("/parent/child")]))
    watching.read(
        SetWatches(
            seen_zxid,
            data=["/a", "/same", "/gone"],
            exist=["/new", "/not-yet"],
            child=["/parent", "/quiet", "/gone"],
            persistent=["/same"],
            recursive=["/x"],
        )
    )
    assert watching.events() == [
        (CHANGED, "/a"),
        (DELETED, "/gone"),
        (CREATED, "/new"),
        (CHILDREN_CHANGED, "/parent"),
        (DELETED, "/gone"),
    ]
    changing.do(Multi([SetData("/same", b""), Create("/not-yet"), Create("/quiet/c"), Create("/x/y")]))
    assert watching.events() == [
        (CHANGED, "/same"),
        (CREATED, "/not-yet"),
        (CHILDREN_CHANGED, "/quiet"),
        (CREATED, "/x/y"),
    ]
    changing.do(Multi([SetData("/a", b""), SetData("/same", b"")]))
    assert watching.events() == [(CHANGED, "/same")]


def test_what_was_missed_but_is_not_durable_yet_is_told_later(watching: Visitor, changing: Visitor) -> None:
    seen_zxid = watching.served.service.zxid
    changing.submit(SetData("/a", b"2"))
    watching.read(SetWatches(seen_zxid, data=["/a"]))
    assert watching.told == []
    watching.served.coordination.sync()
    assert watching.events() == [(CHANGED, "/a")]


def test_a_client_has_a_bounded_number_of_watches(
    watching: Visitor, changing: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "ZNODE_WATCHES_PER_CLIENT_MAX", 3)
    for number in range(3):
        assert watching.ask(Exists(f"/{number}", watch=True)) is Code.NO_NODE
    for more in (Exists("/3", watch=True), GetData("/a", watch=True), AddWatch("/a", 0)):
        assert watching.ask(more) is Code.THROTTLED_OP
    assert watching.ask(SetWatches(0, exist=["/4"])) is Code.THROTTLED_OP
    assert changing.ask(SetWatches(0, exist=["/1", "/2", "/3", "/4"])) is Code.THROTTLED_OP
    assert watching.ask(Exists("/3")) is Code.NO_NODE
    changing.do(Create("/0"))
    watching.events()
    assert watching.ask(Exists("/3", watch=True)) is Code.NO_NODE
