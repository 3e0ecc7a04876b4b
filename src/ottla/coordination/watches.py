"""One-shot watches: who wants to hear of the next change of a node's data, existence or children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import NamedTuple

from ottla.coordination.paths import parent_of
from ottla.coordination.txns import Created, DataSet, Txn


class EventType(IntEnum):
    """ZooKeeper's event types, as its wire carries them."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class WatchEvent(NamedTuple):
    type: EventType
    path: str


Watcher = Callable[[WatchEvent], None]
Fired = tuple[Watcher, WatchEvent]


class Watches:
    """A watcher hears of one change and is then forgotten; set twice on one node, it still hears once."""

    def __init__(self) -> None:
        self._on_data: dict[str, dict[Watcher, None]] = {}  # set by reading data or asking for existence
        self._on_children: dict[str, dict[Watcher, None]] = {}

    def watch_data(self, path: str, watcher: Watcher) -> None:
        self._on_data.setdefault(path, {})[watcher] = None

    def watch_children(self, path: str, watcher: Watcher) -> None:
        self._on_children.setdefault(path, {})[watcher] = None

    def fire(self, txn: Txn) -> list[Fired]:
        """Take out whoever waits for one of the transaction's changes, in the order of the changes."""
        if not self._on_data and not self._on_children:
            return []
        fired: list[Fired] = []
        for change in txn.changes:
            path = change.path
            if isinstance(change, DataSet):
                fired += _take(self._on_data, path, EventType.NODE_DATA_CHANGED)
                continue
            if isinstance(change, Created):
                fired += _take(self._on_data, path, EventType.NODE_CREATED)
            else:
                on_node = self._on_data.pop(path, {}) | self._on_children.pop(path, {})
                fired += ((watcher, WatchEvent(EventType.NODE_DELETED, path)) for watcher in on_node)
            fired += _take(self._on_children, parent_of(path), EventType.NODE_CHILDREN_CHANGED)
        return fired


def _take(waiting: dict[str, dict[Watcher, None]], path: str, event_type: EventType) -> Iterator[Fired]:
    for watcher in waiting.pop(path, ()):
        yield watcher, WatchEvent(event_type, path)
