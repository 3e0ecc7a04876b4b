"""The tree of znodes: ZooKeeper's data model as a pure state machine.

`decide` checks an operation against the tree and resolves it to a transaction without changing anything;
`apply` changes the tree by a transaction and cannot be refused. Only `apply` is used to rebuild the tree from
its log. No file, no clock: time comes in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.coordination import quotas
from ottla.coordination.acls import READ_ACL, Identity
from ottla.coordination.decisions import decide
from ottla.coordination.nodes import Node
from ottla.coordination.operations import ANY_VERSION, Operation, Result
from ottla.coordination.owners import NO_SESSION, is_session
from ottla.coordination.paths import RESERVED
from ottla.coordination.quotas import Quotas, Usage
from ottla.coordination.stat import Stat
from ottla.coordination.txns import AclSet, Created, DataSet, Deleted, SessionOpened, Txn
from ottla.model.values import NamedTuple

BeforeChange = Callable[[str, Node], None]


class SessionTerms(NamedTuple):
    """What a session was promised; it survives a restart."""

    timeout_ms: int
    password: bytes


class Tree:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.sessions: dict[int, SessionTerms] = {}  # of clients; the embedding process has none
        self.ephemerals: dict[int, set[str]] = {}  # session → paths of the nodes that live with it
        self.fading: dict[str, None] = {}  # containers and nodes with a TTL: their time may have come
        self.quotas = Quotas()
        self.data_bytes = 0  # of paths and data, for the statistics
        self.last_zxid = 0
        # While a snapshot is being written, each node is shown to `before_change` before its first change,
        # so that the snapshot holds one moment of the tree (see snapshots.py).
        self.snapshot_mark = 0
        self.before_change: BeforeChange | None = None
        for path in RESERVED:
            self.nodes[path] = Node(b"")
            self.link(path, self.nodes[path])
        config = self.nodes["/zookeeper/config"]
        config.acl, config.aversion = READ_ACL, ANY_VERSION

    def link(self, path: str, node: Node) -> None:
        """Let the rest of the tree know of a node whose own numbers, and its parent's, are right already."""
        self.data_bytes += len(path) + node.data_length
        self._enlist(path, node)
        if path != "/":
            cut = path.rfind("/")
            self.nodes[path[:cut] or "/"].add_child(path[cut + 1 :])

    # Reading

    def get(self, path: str) -> tuple[bytes | None, Stat] | None:
        node = self.nodes.get(path)
        return None if node is None else (node.data, node.stat())

    def exists(self, path: str) -> Stat | None:
        node = self.nodes.get(path)
        return None if node is None else node.stat()

    def children(self, path: str) -> list[str] | None:
        """Names in order, or None without the node."""
        node = self.nodes.get(path)
        return None if node is None else sorted(node.children or ())

    def usage(self, path: str) -> Usage:
        """Nodes and bytes of data at and below `path`."""
        count = size = 0
        waiting = [path] if path in self.nodes else []
        while waiting:
            above = waiting.pop()
            node = self.nodes[above]
            count += 1
            size += node.data_length
            prefix = "/" if above == "/" else above + "/"
            waiting += (prefix + name for name in node.children or ())
        return Usage(count, size)

    # Changing

    def decide(
        self,
        operation: Operation,
        session_id: int,
        now_ms: int,
        identities: Sequence[Identity] | None = None,
    ) -> tuple[Txn | None, Result]:
        """The transaction that carries `operation` out (None when it changes nothing) and its answer.

        `identities` are those of whoever asks; the process itself has none, and may do everything.
        """
        return decide(self, operation, session_id, now_ms, identities)

    def apply(self, txn: Txn) -> None:
        """Change the tree. A transaction that does not fit is a broken invariant (or a broken log)."""
        assert txn.zxid == self.last_zxid + 1, f"transaction {txn.zxid} follows {self.last_zxid}"
        for change in txn.changes:
            if isinstance(change, Created):
                self._create(change, txn)
            elif isinstance(change, DataSet):
                self._set_data(change, txn)
            elif isinstance(change, Deleted):
                self._delete(change, txn)
            elif isinstance(change, AclSet):
                self._changing(change.path).acl_set(change.acl)
            elif isinstance(change, SessionOpened):
                self.sessions[change.session_id] = SessionTerms(change.timeout_ms, change.password)
            else:
                self.sessions.pop(change.session_id, None)
        self.last_zxid = txn.zxid

    def _create(self, change: Created, txn: Txn) -> None:
        path, owner = change.path, change.ephemeral_owner
        assert path not in self.nodes, f"{path} exists"
        cut = path.rfind("/")
        parent = self._changing(path[:cut] or "/")
        parent.child_created(txn.zxid)
        if parent.children is None:
            parent.children = set()
        parent.children.add(path[cut + 1 :])
        node = self.nodes[path] = Node(
            change.data, txn.zxid, txn.time_ms, owner, change.acl, self.snapshot_mark
        )
        self.data_bytes += len(path) + node.data_length
        if owner != NO_SESSION or path.startswith(quotas.QUOTA_ROOT):
            self._enlist(path, node)
            if (measured := quotas.measured_path(path)) is not None:
                self._measure(node, self.usage(measured))
        if self.quotas.prefixes:
            self._use(path, Usage(1, node.data_length))

    def _enlist(self, path: str, node: Node) -> None:
        """What is known of the node elsewhere: who owns it, what it limits."""
        owner = node.ephemeral_owner
        if owner != NO_SESSION:
            if is_session(owner):
                self.ephemerals.setdefault(owner, set()).add(path)
            else:
                self.fading[path] = None
        if (limited := quotas.limited_path(path)) is not None:
            self.quotas.prefixes.add(limited)

    def _delete(self, change: Deleted, txn: Txn) -> None:
        path = change.path
        node = self._changing(path)
        assert not node.child_count, f"{path} has children"
        cut = path.rfind("/")
        parent = self._changing(path[:cut] or "/")
        parent.child_deleted(txn.zxid)
        assert parent.children is not None
        parent.children.remove(path[cut + 1 :])
        if not parent.children:
            parent.children = None
        del self.nodes[path]
        self.data_bytes -= len(path) + node.data_length
        owner = node.ephemeral_owner
        if owner != NO_SESSION:
            if is_session(owner):
                owned = self.ephemerals[owner]
                owned.remove(path)
                if not owned:
                    del self.ephemerals[owner]
            else:
                del self.fading[path]
        if self.quotas.prefixes:
            self.quotas.prefixes.discard(quotas.limited_path(path) or "")
            self._use(path, Usage(-1, -node.data_length))

    def _set_data(self, change: DataSet, txn: Txn) -> None:
        node = self._changing(change.path)
        before = node.data_length
        data = change.data
        node.data = data
        node.data_set(len(data) if data else 0, txn.zxid, txn.time_ms)
        self.data_bytes += node.data_length - before
        if self.quotas.prefixes:
            self._use(change.path, Usage(0, node.data_length - before))

    def _use(self, path: str, added: Usage) -> None:
        prefix = self.quotas.prefix_of(path)
        if prefix is not None and (usage_path := quotas.usage_path(prefix)) in self.nodes:
            node = self._changing(usage_path)
            self._measure(node, quotas.decode_usage(node.data).plus(added))

    def _measure(self, node: Node, usage: Usage) -> None:
        node.data = usage.encode()
        self.data_bytes += len(node.data) - node.data_length
        node.data_length = len(node.data)

    def _changing(self, path: str) -> Node:
        node = self.nodes.get(path)
        assert node is not None, f"{path} does not exist"
        if self.before_change is not None and node.snapshot_mark != self.snapshot_mark:
            self.before_change(path, node)
        return node
