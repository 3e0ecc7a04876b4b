"""What clients may ask of the tree without changing it, and the answers: ZooKeeper's reads and watches. Pure.

An answer is what the tree says now; when it may leave is for others to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ottla.coordination.acls import Perms, masked, permits, user_of
from ottla.coordination.client import Answer
from ottla.coordination.nodes import Node
from ottla.coordination.operations import OK, Code
from ottla.coordination.quotas import QUOTA_ROOT
from ottla.coordination.sessions import Client
from ottla.coordination.watches import (
    ANY_MODE,
    ONCE,
    PERSISTENT,
    RECURSIVE,
    EventType,
    Fired,
    Watches,
    WatchEvent,
)
from ottla.coordination.znodes import Tree
from ottla.model.limits import ZNODE_WATCHES_PER_CLIENT_MAX
from ottla.model.values import NamedTuple


class Exists:
    """Stat. The watch is set even if the node is not there: it fires when it comes."""

    __slots__ = ("path", "watch")

    def __init__(self, path: str, watch: bool = False) -> None:
        self.path = path
        self.watch = watch


class GetData:
    """(data, Stat)"""

    __slots__ = ("path", "watch")

    def __init__(self, path: str, watch: bool = False) -> None:
        self.path = path
        self.watch = watch


class GetChildren:
    """(names, Stat)"""

    __slots__ = ("path", "watch")

    def __init__(self, path: str, watch: bool = False) -> None:
        self.path = path
        self.watch = watch


class GetAcl(NamedTuple):
    """(access list, Stat); digests are masked for those who may not change the list."""

    path: str


class CountDescendants(NamedTuple):
    """A number. ZooKeeper calls it getAllChildrenNumber."""

    path: str


class GetEphemerals(NamedTuple):
    """Paths of the session's ephemeral nodes that begin with `prefix`."""

    prefix: str


class MultiRead(NamedTuple):
    """An Answer for each, whatever becomes of the others."""

    reads: Sequence[GetData | GetChildren]


class Sync(NamedTuple):
    """The path, when everything submitted before has been answered."""

    path: str


class WhoAmI:
    """(scheme, user) of every identity."""

    __slots__ = ()


class AddWatch(NamedTuple):
    """Mode 0: persistent, 1: persistent and recursive."""

    path: str
    mode: int


class CheckWatches(NamedTuple):
    """Whether the client has a watch of this type: see _WATCH_TYPES."""

    path: str
    type: int


class RemoveWatches(NamedTuple):
    path: str
    type: int


class SetWatches(NamedTuple):
    """A client that was away has its watches again, and hears what it missed since `relative_zxid`."""

    relative_zxid: int
    data: Sequence[str] = ()
    exist: Sequence[str] = ()
    child: Sequence[str] = ()
    persistent: Sequence[str] = ()
    recursive: Sequence[str] = ()


Read = (
    Exists
    | GetData
    | GetChildren
    | GetAcl
    | CountDescendants
    | GetEphemerals
    | MultiRead
    | Sync
    | WhoAmI
    | AddWatch
    | CheckWatches
    | RemoveWatches
    | SetWatches
)

# ZooKeeper's numbers: which modes of watch, on (data, children).
_WATCH_TYPES = {
    1: (0, ONCE),
    2: (ONCE, 0),
    3: (ANY_MODE, ANY_MODE),
    4: (PERSISTENT, PERSISTENT),
    5: (RECURSIVE, 0),
}


class Found:
    __slots__ = ("code", "missed", "shown", "value")

    def __init__(
        self, code: Code, value: Any = None, shown: str | None = None, missed: Sequence[Fired] = ()
    ) -> None:
        self.code = code
        self.value = value
        self.shown = shown  # the one node whose state it tells; None: it may tell of any
        self.missed = missed  # events that belong in front of it


# Field by field, as what every request makes: compiled, a call would make objects of its arguments.


def get_data_of(path: str, watch: bool) -> GetData:
    read = GetData.__new__(GetData)
    read.path = path
    read.watch = watch
    return read


def found_of(code: Code, value: Any, shown: str | None) -> Found:
    found = Found.__new__(Found)
    found.code = code
    found.value = value
    found.shown = shown
    found.missed = ()
    return found


class Reader:
    def __init__(self, tree: Tree, watches: Watches) -> None:
        self._tree = tree
        self._watches = watches
        self._by_type: dict[type, Callable[[Client, Any], Found]] = {
            Exists: self._exists,
            GetData: self._get_data,
            GetChildren: self._get_children,
            GetAcl: self._get_acl,
            CountDescendants: self._count_descendants,
            GetEphemerals: self._get_ephemerals,
            MultiRead: self._multi_read,
            Sync: lambda _, read: Found(OK, read.path),
            WhoAmI: self._who_am_i,
            AddWatch: self._add_watch,
            CheckWatches: self._check_watches,
            RemoveWatches: self._remove_watches,
            SetWatches: self._set_watches,
        }

    def read(self, client: Client, read: Read) -> Found:
        if isinstance(read, GetData):  # by far the most
            return self._get_data(client, read)
        return self._by_type[type(read)](client, read)

    # Nodes

    def _exists(self, client: Client, read: Exists) -> Found:
        path = read.path
        if "\0" in path:
            return Found(Code.BAD_ARGUMENTS, None, path)
        node = self._tree.nodes.get(path)
        if node is not None and not permits(node.acl, Perms.READ, client.identities):
            return Found(Code.NO_AUTH, None, path)
        if read.watch:
            if self._watches_left(client) < 1:
                return Found(Code.THROTTLED_OP, None, path)
            self._watches.data.add(path, client)
        return Found(Code.NO_NODE, None, path) if node is None else Found(OK, node.stat(), _shown(path))

    def _get_data(self, client: Client, read: GetData) -> Found:
        path = read.path
        node = self._tree.nodes.get(path)
        if node is None:
            return Found(Code.NO_NODE, None, path)
        if (refused := self._refusal(client, node, read.watch)) is not None:
            return Found(refused, None, path)
        if read.watch:
            self._watches.data.add(path, client)
        return found_of(OK, (node.data, node.stat()), _shown(path))

    def _get_children(self, client: Client, read: GetChildren) -> Found:
        path = read.path
        node = self._tree.nodes.get(path)
        if node is None:
            return Found(Code.NO_NODE, None, path)
        if (refused := self._refusal(client, node, read.watch)) is not None:
            return Found(refused, None, path)
        if read.watch:
            self._watches.children.add(path, client)
        return Found(OK, (list(node.children or ()), node.stat()), path)

    def _refusal(self, client: Client, node: Node, watch: bool) -> Code | None:
        if not permits(node.acl, Perms.READ, client.identities):
            return Code.NO_AUTH
        if watch and self._watches_left(client) < 1:
            return Code.THROTTLED_OP
        return None

    def _get_acl(self, client: Client, read: GetAcl) -> Found:
        node = self._tree.nodes.get(read.path)
        if node is None:
            return Found(Code.NO_NODE, None, read.path)
        if not permits(node.acl, Perms.READ | Perms.ADMIN, client.identities):
            return Found(Code.NO_AUTH, None, read.path)
        may_change = permits(node.acl, Perms.ADMIN, client.identities)
        return Found(OK, (node.acl if may_change else masked(node.acl), node.stat()), read.path)

    def _count_descendants(self, client: Client, read: CountDescendants) -> Found:
        node = self._tree.nodes.get(read.path)
        if node is None:
            return Found(Code.NO_NODE)
        if not permits(node.acl, Perms.READ, client.identities):
            return Found(Code.NO_AUTH)
        nodes = len(self._tree.nodes) if read.path == "/" else self._tree.usage(read.path).nodes
        return Found(OK, nodes - 1)

    def _get_ephemerals(self, client: Client, read: GetEphemerals) -> Found:
        owned = self._tree.ephemerals.get(client.session.id, set()) if client.session else set()
        prefix = read.prefix.strip()
        return Found(OK, sorted(path for path in owned if prefix in ("", "/") or path.startswith(prefix)))

    def _multi_read(self, client: Client, read: MultiRead) -> Found:
        answers = []
        for one in read.reads:
            found = self.read(client, one)
            answers.append(Answer(found.code, 0, found.value))
        return Found(OK, answers)

    def _who_am_i(self, client: Client, read: WhoAmI) -> Found:
        return Found(OK, [(one.scheme, user_of(one)) for one in client.identities])

    # Watches

    def _watches_left(self, client: Client) -> int:
        return ZNODE_WATCHES_PER_CLIENT_MAX - self._watches.count_of(client)

    def _add_watch(self, client: Client, read: AddWatch) -> Found:
        if read.mode not in (0, 1):
            return Found(Code.BAD_ARGUMENTS)
        if self._watches_left(client) < 1:
            return Found(Code.THROTTLED_OP)
        self._watches.add_persistent(read.path, client, recursive=read.mode == 1)
        return Found(OK)

    def _check_watches(self, client: Client, read: CheckWatches) -> Found:
        if read.type not in _WATCH_TYPES:
            return Found(Code.BAD_ARGUMENTS)
        data_modes, child_modes = _WATCH_TYPES[read.type]
        has = self._watches.data.has(read.path, client, data_modes)
        has |= self._watches.children.has(read.path, client, child_modes)
        return Found(OK if has else Code.NO_WATCHER)

    def _remove_watches(self, client: Client, read: RemoveWatches) -> Found:
        if read.type not in _WATCH_TYPES:
            return Found(Code.BAD_ARGUMENTS)
        data_modes, child_modes = _WATCH_TYPES[read.type]
        removed = self._watches.data.remove(read.path, client, data_modes)
        removed |= self._watches.children.remove(read.path, client, child_modes)
        return Found(OK if removed else Code.NO_WATCHER)

    def _set_watches(self, client: Client, read: SetWatches) -> Found:
        wanted = len(read.data) + len(read.exist) + len(read.child)
        wanted += 2 * len(read.persistent) + len(read.recursive)
        if wanted > self._watches_left(client):
            return Found(Code.THROTTLED_OP)
        missed: list[Fired] = []

        def miss(event_type: EventType, path: str) -> None:
            missed.append((client, WatchEvent(event_type, path)))

        nodes, since = self._tree.nodes, read.relative_zxid
        for path in read.data:
            if (node := nodes.get(path)) is None:
                miss(EventType.NODE_DELETED, path)
            elif node.mzxid > since:
                miss(EventType.NODE_DATA_CHANGED, path)
            else:
                self._watches.data.add(path, client)
        for path in read.exist:
            if path in nodes:
                miss(EventType.NODE_CREATED, path)
            else:
                self._watches.data.add(path, client)
        for path in read.child:
            if (node := nodes.get(path)) is None:
                miss(EventType.NODE_DELETED, path)
            elif node.pzxid > since:
                miss(EventType.NODE_CHILDREN_CHANGED, path)
            else:
                self._watches.children.add(path, client)
        for path in read.persistent:
            self._watches.add_persistent(path, client, recursive=False)
        for path in read.recursive:
            self._watches.add_persistent(path, client, recursive=True)
        return Found(OK, None, None, missed)


def _shown(path: str) -> str | None:
    """The usage of a quota changes with nodes elsewhere."""
    return None if path.startswith(QUOTA_ROOT) else path
