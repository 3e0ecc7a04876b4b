"""Who wants to hear of which change: ZooKeeper's watches, fired by transactions. Pure; delivers nothing.

A watch on data hears of the node's creation, change and deletion; a watch on children of a child that came
or went, and of the node's deletion. It fires once; a persistent one fires each time, and a recursive one
hears of the data of everything below its node too (never of children: their own events say as much).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Protocol

from ottla.coordination.acls import AccessList, Identity, Perms, permits
from ottla.coordination.nodes import Node
from ottla.coordination.paths import parent_of
from ottla.coordination.txns import Created, DataSet, Deleted, Txn
from ottla.model.values import NamedTuple

NO_ZXID = -1


class EventType(IntEnum):
    """ZooKeeper's event types, as its wire carries them."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    type: EventType
    path: str
    zxid: int = NO_ZXID  # of the transaction; not known for changes that were missed while away


class Watcher(Protocol):
    """Who hears; equal watchers are one."""

    @property
    def identities(self) -> Sequence[Identity] | None:
        """Nothing is told of nodes that none of them may read. None: everything is."""
        ...

    @property
    def notify(self) -> Callable[[WatchEvent], None]: ...


Fired = tuple[Watcher, WatchEvent]

# How long a watch stays; bits, because a watcher may have several on one node.
ONCE, PERSISTENT, RECURSIVE = 1, 2, 4
ANY_MODE = ONCE | PERSISTENT | RECURSIVE


class WatchTable:
    """Watches of one kind, by path and by watcher."""

    __slots__ = ("by_path", "by_watcher", "recursive")

    def __init__(self) -> None:
        self.by_path: dict[str, dict[Watcher, int]] = {}  # the modes of each watcher
        self.by_watcher: dict[Watcher, set[str]] = {}
        self.recursive = 0  # how many; without any, nobody above a path needs to be looked for

    def add(self, path: str, watcher: Watcher, mode: int = ONCE) -> None:
        watchers = self.by_path.setdefault(path, {})
        before = watchers.get(watcher, 0)
        watchers[watcher] = before | mode
        self.by_watcher.setdefault(watcher, set()).add(path)
        if mode == RECURSIVE and not before & RECURSIVE:
            self.recursive += 1

    def has(self, path: str, watcher: Watcher, modes: int = ANY_MODE) -> bool:
        return bool(self.by_path.get(path, {}).get(watcher, 0) & modes)

    def remove(self, path: str, watcher: Watcher, modes: int = ANY_MODE) -> bool:
        """False when there was no such watch."""
        watchers = self.by_path.get(path, {})
        before = watchers.get(watcher, 0)
        if not before & modes:
            return False
        if before & modes & RECURSIVE:
            self.recursive -= 1
        watchers[watcher] = before & ~modes
        if not watchers[watcher]:
            del watchers[watcher]
            self._forget(path, watcher)
            if not watchers:
                del self.by_path[path]
        return True

    def remove_watcher(self, watcher: Watcher) -> None:
        for path in list(self.by_watcher.get(watcher, ())):
            self.remove(path, watcher)

    def fire(self, path: str) -> dict[Watcher, None]:
        """Everybody who hears of `path`, each once. Those who wanted to hear once are taken out."""
        found = self.by_path.get(path)
        if found is None and not self.recursive:
            return {}
        heard: dict[Watcher, None] = dict.fromkeys(found or ())
        for watcher in heard:
            self.remove(path, watcher, ONCE)
        if self.recursive:
            above = path
            while above != "/":
                above = parent_of(above)
                for watcher, modes in self.by_path.get(above, {}).items():
                    if modes & RECURSIVE:
                        heard[watcher] = None
        return heard

    def _forget(self, path: str, watcher: Watcher) -> None:
        paths = self.by_watcher[watcher]
        paths.remove(path)
        if not paths:
            del self.by_watcher[watcher]


class Watches:
    def __init__(self) -> None:
        self.data = WatchTable()  # set by reading data or asking for existence; the recursive ones too
        self.children = WatchTable()

    def add_persistent(self, path: str, watcher: Watcher, *, recursive: bool) -> None:
        if recursive:
            self.data.add(path, watcher, RECURSIVE)
        else:
            self.data.add(path, watcher, PERSISTENT)
            self.children.add(path, watcher, PERSISTENT)

    def count_of(self, watcher: Watcher) -> int:
        return len(self.data.by_watcher.get(watcher, ())) + len(self.children.by_watcher.get(watcher, ()))

    def remove_watcher(self, watcher: Watcher) -> None:
        self.data.remove_watcher(watcher)
        self.children.remove_watcher(watcher)

    def fire(self, txn: Txn, nodes: Mapping[str, Node]) -> list[Fired]:
        """Whoever is to hear of a transaction that is about to change `nodes`, in their order."""
        if not self.data.by_path and not self.children.by_path:
            return []
        fired: list[Fired] = []
        for change in txn.changes:
            if isinstance(change, (Created, DataSet, Deleted)):
                for watchers, event in self._heard(change, txn.zxid):
                    if watchers:
                        acl = _acl_of(event.path, txn, nodes)
                        permitted = (one for one in watchers if permits(acl, Perms.READ, one.identities))
                        fired += ((watcher, event) for watcher in permitted)
        return fired

    def _heard(
        self, change: Created | DataSet | Deleted, zxid: int
    ) -> Iterator[tuple[dict[Watcher, None], WatchEvent]]:
        path = change.path
        on_node = self.data.fire(path)
        if isinstance(change, DataSet):
            yield on_node, WatchEvent(EventType.NODE_DATA_CHANGED, path, zxid)
            return
        if isinstance(change, Created):
            yield on_node, WatchEvent(EventType.NODE_CREATED, path, zxid)
        else:
            yield on_node | self.children.fire(path), WatchEvent(EventType.NODE_DELETED, path, zxid)
        parent = parent_of(path)
        yield self.children.fire(parent), WatchEvent(EventType.NODE_CHILDREN_CHANGED, parent, zxid)


def _acl_of(path: str, txn: Txn, nodes: Mapping[str, Node]) -> AccessList:
    """Of a node as the transaction finds or creates it."""
    node = nodes.get(path)
    if node is not None:
        return node.acl
    created = (change for change in txn.changes if isinstance(change, Created) and change.path == path)
    return next(created).acl
