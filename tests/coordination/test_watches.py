"""A watch fires once, for the changes ZooKeeper names, in their order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.coordination.acls import Identity
from ottla.coordination.operations import CloseSession, Create, Delete, Multi, Operation, SetData
from ottla.coordination.watches import EventType, Watches, WatchEvent
from ottla.coordination.znodes import Tree

CREATED, DELETED = EventType.NODE_CREATED, EventType.NODE_DELETED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED


class Listener:
    def __init__(self, notify: Callable[[WatchEvent], None], identities: list[Identity] | None) -> None:
        self.notify = notify
        self.identities = identities


class Watched:
    def __init__(self) -> None:
        self.tree = Tree()
        self.watches = Watches()
        self.seen: list[tuple[str, EventType, str]] = []

    def listener(self, name: str, identities: list[Identity] | None = None) -> Listener:
        return Listener(lambda event: self.seen.append((name, event.type, event.path)), identities)

    def do(self, operation: Operation) -> None:
        txn, result = self.tree.decide(operation, 1, 0)
        assert result.ok
        if txn is not None:
            fired = self.watches.fire(txn, self.tree.nodes)
            self.tree.apply(txn)
            for watcher, event in fired:
                assert event.zxid == txn.zxid
                watcher.notify(event)


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.do(Multi([Create("/a"), Create("/a/b"), Create("/e", ephemeral=True)]))
    return watched


@pytest.mark.parametrize(
    ("operation", "data", "children", "seen"),
    [
        (SetData("/a", b""), "/a", "/a", [(CHANGED, "/a")]),
        (SetData("/a", b""), "/a/b", "/", []),
        (Create("/a/c"), "/a/c", "/a", [(CREATED, "/a/c"), (CHILDREN, "/a")]),
        (Create("/c"), "/a", "/", [(CHILDREN, "/")]),
        (Delete("/a/b"), "/a/b", "/a", [(DELETED, "/a/b"), (CHILDREN, "/a")]),
        (Delete("/a/b"), "/a", "/a/b", [(DELETED, "/a/b")]),
        (Delete("/a/b"), "/a/b", "/a/b", [(DELETED, "/a/b")]),  # one event for both watches of a node
        (CloseSession(1), "/e", "/", [(DELETED, "/e"), (CHILDREN, "/")]),
        (Multi([SetData("/a", b""), Create("/a/c")]), "/a", "/a", [(CHANGED, "/a"), (CHILDREN, "/a")]),
        (Multi([Create("/a/c"), Delete("/a/c")]), "/a/c", "/a", [(CREATED, "/a/c"), (CHILDREN, "/a")]),
    ],
)
def test_changes_and_their_events(
    watched: Watched, operation: Operation, data: str, children: str, seen: list[tuple[EventType, str]]
) -> None:
    listener = watched.listener("one")
    watched.watches.data.add(data, listener)
    watched.watches.children.add(children, listener)
    watched.do(operation)
    assert watched.seen == [("one", *event) for event in seen]


def test_a_watch_fires_once(watched: Watched) -> None:
    listener = watched.listener("one")
    watched.watches.data.add("/a", listener)
    watched.watches.data.add("/a", listener)
    watched.do(SetData("/a", b"1"))
    watched.do(SetData("/a", b"2"))
    assert watched.seen == [("one", CHANGED, "/a")]


def test_every_watcher_of_a_node_hears(watched: Watched) -> None:
    watched.watches.data.add("/a", watched.listener("one"))
    watched.watches.data.add("/a", watched.listener("two"))
    watched.do(SetData("/a", b"1"))
    assert watched.seen == [("one", CHANGED, "/a"), ("two", CHANGED, "/a")]
