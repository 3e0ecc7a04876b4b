"""The tree of znodes: ZooKeeper's data model as a pure state machine.

`decide` checks an operation against the tree and resolves it to a transaction without changing anything;
`apply` changes the tree by a transaction and cannot be refused. Only `apply` is used to rebuild the tree from
its log. No file, no clock: time comes in as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla.coordination import paths
from ottla.coordination.operations import (
    ANY_VERSION,
    NO_SESSION,
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    Operation,
    Result,
    SetData,
    Stat,
    Step,
    StepResult,
)
from ottla.coordination.txns import Change, Created, DataSet, Deleted, Txn

_VERSION_MAX: Final = 2**31 - 1
_DONE: Final = StepResult(Code.OK)
_NEW: Final = object.__new__


class NodeNumbers:
    """A znode without its content: all that a decision needs to know, and all that Stat tells."""

    __slots__ = (
        "aversion",
        "child_count",
        "child_creations",  # how many children were ever created: numbers sequential ones
        "ctime_ms",
        "czxid",
        "data_length",
        "ephemeral_owner",
        "mtime_ms",
        "mzxid",
        "pzxid",
        "version",
    )

    def __init__(self, zxid: int, time_ms: int, data_length: int, ephemeral_owner: int) -> None:
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = time_ms
        self.version = self.aversion = self.child_creations = self.child_count = 0
        self.data_length = data_length
        self.ephemeral_owner = ephemeral_owner

    def stat(self) -> Stat:
        return Stat(
            self.czxid,
            self.mzxid,
            self.ctime_ms,
            self.mtime_ms,
            self.version,
            # Creations and deletions, the latter being the creations that are no longer there.
            2 * self.child_creations - self.child_count,
            self.aversion,
            self.ephemeral_owner,
            self.data_length,
            self.child_count,
            self.pzxid,
        )

    def numbers(self) -> NodeNumbers:
        """A copy to work on."""
        copy: NodeNumbers = _NEW(NodeNumbers)
        copy.czxid = self.czxid
        copy.mzxid = self.mzxid
        copy.pzxid = self.pzxid
        copy.ctime_ms = self.ctime_ms
        copy.mtime_ms = self.mtime_ms
        copy.version = self.version
        copy.aversion = self.aversion
        copy.child_creations = self.child_creations
        copy.child_count = self.child_count
        copy.data_length = self.data_length
        copy.ephemeral_owner = self.ephemeral_owner
        return copy

    def child_created(self, zxid: int) -> None:
        self.child_creations += 1
        self.child_count += 1
        self.pzxid = zxid

    def child_deleted(self, zxid: int) -> None:
        self.child_count -= 1
        self.pzxid = zxid

    def data_set(self, data_length: int, zxid: int, time_ms: int) -> None:
        # A version that wraps must not become ANY_VERSION, so it goes on from 0.
        self.version = self.version + 1 if self.version < _VERSION_MAX else 0
        self.data_length = data_length
        self.mzxid = zxid
        self.mtime_ms = time_ms


class Node(NodeNumbers):
    __slots__ = (
        "children",  # names; None until the first child, because most nodes are leaves
        "data",
        "snapshot_mark",  # the newest snapshot that holds the node as it was when that snapshot began
    )

    def __init__(self, data: bytes | None, zxid: int, time_ms: int, ephemeral_owner: int, mark: int) -> None:
        super().__init__(zxid, time_ms, len(data) if data else 0, ephemeral_owner)
        self.data = data
        self.children: set[str] | None = None
        self.snapshot_mark = mark


BeforeChange = Callable[[str, Node], None]


class Tree:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0, NO_SESSION, 0)}
        self.ephemerals: dict[int, set[str]] = {}  # session → paths of the nodes that live with it
        self.last_zxid = 0
        # While a snapshot is being written, each node is shown to `before_change` before its first change,
        # so that the snapshot holds one moment of the tree (see snapshots.py).
        self.snapshot_mark = 0
        self.before_change: BeforeChange | None = None

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

    # Changing

    def decide(self, operation: Operation, session_id: int, now_ms: int) -> tuple[Txn | None, Result]:
        """The transaction that carries `operation` out (None when it changes nothing) and its answer."""
        decision = _Decision(self, session_id, now_ms)
        if isinstance(operation, Multi):
            return decision.multi(operation)
        if isinstance(operation, CloseSession):
            for path in sorted(self.ephemerals.get(operation.session_id, ()), reverse=True):
                decision.step(Delete(path))
            return decision.finish([_DONE])
        answer = decision.step(operation)
        if answer.code is not Code.OK:
            return None, Result(answer.code, self.last_zxid, [answer])
        return decision.finish([answer])

    def apply(self, txn: Txn) -> None:
        """Change the tree. A transaction that does not fit is a broken invariant (or a broken log)."""
        assert txn.zxid == self.last_zxid + 1, f"transaction {txn.zxid} follows {self.last_zxid}"
        for change in txn.changes:
            if isinstance(change, Created):
                self._create(change, txn)
            elif isinstance(change, DataSet):
                self._set_data(change, txn)
            else:
                self._delete(change, txn)
        self.last_zxid = txn.zxid

    def _create(self, change: Created, txn: Txn) -> None:
        path, data, owner = change
        assert path not in self.nodes, f"{path} exists"
        cut = path.rfind("/")
        parent = self._changing(path[:cut] or "/")
        parent.child_created(txn.zxid)
        if parent.children is None:
            parent.children = set()
        parent.children.add(path[cut + 1 :])
        self.nodes[path] = Node(data, txn.zxid, txn.time_ms, owner, self.snapshot_mark)
        if owner != NO_SESSION:
            self.ephemerals.setdefault(owner, set()).add(path)

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
        if node.ephemeral_owner != NO_SESSION:
            owned = self.ephemerals[node.ephemeral_owner]
            owned.remove(path)
            if not owned:
                del self.ephemerals[node.ephemeral_owner]

    def _set_data(self, change: DataSet, txn: Txn) -> None:
        node = self._changing(change.path)
        node.data = change.data
        node.data_set(len(change.data) if change.data else 0, txn.zxid, txn.time_ms)

    def _changing(self, path: str) -> Node:
        node = self.nodes.get(path)
        assert node is not None, f"{path} does not exist"
        if self.before_change is not None and node.snapshot_mark != self.snapshot_mark:
            self.before_change(path, node)
        return node


class _Decision:
    """An operation on its way to a transaction: the tree, and on top of it what the steps so far changed."""

    __slots__ = ("_changes", "_edited", "_nodes", "_now_ms", "_session_id", "_zxid")

    def __init__(self, tree: Tree, session_id: int, now_ms: int) -> None:
        self._nodes = tree.nodes
        self._zxid = tree.last_zxid + 1
        self._now_ms = now_ms
        self._session_id = session_id
        self._edited: dict[str, NodeNumbers | None] = {}  # None: deleted by an earlier step
        self._changes: list[Change] = []

    def multi(self, operation: Multi) -> tuple[Txn | None, Result]:
        answers: list[StepResult] = []
        for step in operation.steps:
            answer = self.step(step)
            if answer.code is not Code.OK:
                return None, self._failed(operation, len(answers), answer)
            answers.append(answer)
        return self.finish(answers)

    def finish(self, answers: list[StepResult]) -> tuple[Txn | None, Result]:
        if not self._changes:
            return None, Result(Code.OK, self._zxid - 1, answers)
        txn = Txn(self._zxid, self._now_ms, tuple(self._changes))
        return txn, Result(Code.OK, self._zxid, answers)

    def _failed(self, operation: Multi, index: int, answer: StepResult) -> Result:
        """As ZooKeeper answers: OK before the step that failed, inconsistency behind it."""
        after = [StepResult(Code.RUNTIME_INCONSISTENCY)] * (len(operation.steps) - index - 1)
        return Result(answer.code, self._zxid - 1, [_DONE] * index + [answer] + after)

    def step(self, step: Step) -> StepResult:
        if isinstance(step, Create):
            return self._create(step)
        if not paths.is_legal(step.path):
            return StepResult(Code.BAD_ARGUMENTS)
        if isinstance(step, Delete):
            return self._delete(step)
        node = self._find(step.path)
        if node is None:
            return StepResult(Code.NO_NODE)
        if step.version not in (ANY_VERSION, node.version):
            return StepResult(Code.BAD_VERSION)
        if isinstance(step, Check):
            return _DONE
        return self._set_data(step, node)

    def _create(self, step: Create) -> StepResult:
        path = step.path
        # A sequential node may consist of its number alone ("/queue/").
        if not paths.is_legal(path + "0" if step.sequential else path):
            return StepResult(Code.BAD_ARGUMENTS)
        parent_path = path[: path.rfind("/")] or "/"
        parent = self._find(parent_path)
        if parent is None:
            # The root is its own parent and always there.
            return StepResult(Code.NO_NODE)
        if step.sequential:
            path = f"{path}{parent.child_creations:010d}"
        if self._find(path) is not None:
            return StepResult(Code.NODE_EXISTS)
        if parent.ephemeral_owner != NO_SESSION:
            return StepResult(Code.NO_CHILDREN_FOR_EPHEMERALS)
        owner = self._session_id if step.ephemeral else NO_SESSION
        self._edit(parent_path, parent).child_created(self._zxid)
        data = step.data
        node = NodeNumbers(self._zxid, self._now_ms, len(data) if data else 0, owner)
        self._edited[path] = node
        self._changes.append(Created(path, data, owner))
        return StepResult(Code.OK, path, node.stat())

    def _delete(self, step: Delete) -> StepResult:
        path = step.path
        if path == "/":
            return StepResult(Code.BAD_ARGUMENTS)
        node = self._find(path)
        if node is None:
            return StepResult(Code.NO_NODE)
        if step.version not in (ANY_VERSION, node.version):
            return StepResult(Code.BAD_VERSION)
        if node.child_count:
            return StepResult(Code.NOT_EMPTY)
        parent_path = paths.parent_of(path)
        parent = self._find(parent_path)
        assert parent is not None
        self._edit(parent_path, parent).child_deleted(self._zxid)
        self._edited[path] = None
        self._changes.append(Deleted(path))
        return _DONE

    def _set_data(self, step: SetData, node: NodeNumbers) -> StepResult:
        edited = self._edit(step.path, node)
        edited.data_set(len(step.data) if step.data else 0, self._zxid, self._now_ms)
        self._changes.append(DataSet(step.path, step.data))
        return StepResult(Code.OK, None, edited.stat())

    def _find(self, path: str) -> NodeNumbers | None:
        if path in self._edited:
            return self._edited[path]
        return self._nodes.get(path)

    def _edit(self, path: str, node: NodeNumbers) -> NodeNumbers:
        edited = self._edited.get(path)
        if edited is None:
            edited = self._edited[path] = node.numbers()
        return edited
