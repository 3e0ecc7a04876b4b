"""A watch fires once, for the changes ZooKeeper names, in their order."""

from __future__ import annotations

import pytest

from ottla.coordination.operations import CloseSession, Create, Delete, Multi, Operation, SetData
from ottla.coordination.watches import EventType, Watches, WatchEvent
from ottla.coordination.znodes import Tree

CREATED, DELETED = EventType.NODE_CREATED, EventType.NODE_DELETED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED


class Watched:
    def __init__(self) -> None:
        self.tree = Tree()
        self.watches = Watches()
        self.seen: list[tuple[str, EventType, str]] = []

    def hear(self, event: WatchEvent) -> None:
        self.seen.append(("one", event.type, event.path))

    def hear_too(self, event: WatchEvent) -> None:
        self.seen.append(("two", event.type, event.path))

    def do(self, operation: Operation) -> None:
        txn, result = self.tree.decide(operation, 1, 0)
        assert result.ok
        if txn is not None:
            self.tree.apply(txn)
            for watcher, event in self.watches.fire(txn):
                watcher(event)


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
    watched.watches.watch_data(data, watched.hear)
    watched.watches.watch_children(children, watched.hear)
    watched.do(operation)
    assert watched.seen == [("one", *event) for event in seen]


def test_a_watch_fires_once(watched: Watched) -> None:
    watched.watches.watch_data("/a", watched.hear)
    watched.watches.watch_data("/a", watched.hear)
    watched.do(SetData("/a", b"1"))
    watched.do(SetData("/a", b"2"))
    assert watched.seen == [("one", CHANGED, "/a")]


def test_every_watcher_of_a_node_hears(watched: Watched) -> None:
    watched.watches.watch_data("/a", watched.hear)
    watched.watches.watch_data("/a", watched.hear_too)
    watched.do(SetData("/a", b"1"))
    assert watched.seen == [("one", CHANGED, "/a"), ("two", CHANGED, "/a")]
