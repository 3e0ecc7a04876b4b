"""What becomes of an operation: ZooKeeper's rules, in ZooKeeper's order, from the tree to a transaction.

Nothing is changed here. The steps of a multi see what the steps before them would change, through an overlay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from ottla.coordination import paths, quotas
from ottla.coordination.acls import OPEN_ACL, Identity, Perms, permits, resolve
from ottla.coordination.nodes import Node, NodeNumbers
from ottla.coordination.operations import (
    ANY_VERSION,
    NO_TTL,
    OK,
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    OpenSession,
    Operation,
    Refusal,
    Result,
    SetAcl,
    SetData,
    Step,
    StepResult,
    result_of,
    step_result,
)
from ottla.coordination.owners import CONTAINER, NO_SESSION, is_session, ttl_owner
from ottla.coordination.quotas import Quotas, Usage
from ottla.coordination.txns import (
    AclSet,
    Change,
    Created,
    Deleted,
    SessionClosed,
    SessionOpened,
    Txn,
    data_set_of,
    txn_of,
)

_DONE: Final = StepResult(OK)


class State(Protocol):
    """The tree, as far as decisions look at it."""

    nodes: dict[str, Node]
    ephemerals: dict[int, set[str]]
    quotas: Quotas
    last_zxid: int

    @property
    def sessions(self) -> Mapping[int, object]: ...


def decide(
    state: State,
    operation: Operation,
    session_id: int,
    now_ms: int,
    identities: Sequence[Identity] | None,
) -> tuple[Txn | None, Result]:
    decision = _decision(state, session_id, now_ms, identities)
    if isinstance(operation, tuple):  # as those are that come less often
        if isinstance(operation, Multi):
            return decision.multi(operation)
        if isinstance(operation, OpenSession):
            return decision.open_session(operation)
        if isinstance(operation, CloseSession):
            return decision.close_session(operation)
    answer = decision.step(operation)
    if answer.code is not OK:
        return None, Result(answer.code, state.last_zxid, [answer])
    return decision.finish([answer])


class _Decision:
    """An operation on its way to a transaction: the tree, and on top of it what the steps so far changed."""

    __slots__ = (
        "_changes",
        "_edited",
        "_has_quotas",
        "_identities",
        "_nodes",
        "_now_ms",
        "_session_id",
        "_state",
        "_used",
        "_zxid",
    )

    _state: State
    _nodes: dict[str, Node]
    _zxid: int
    _now_ms: int
    _session_id: int
    _identities: Sequence[Identity] | None
    _has_quotas: bool
    _edited: dict[str, NodeNumbers | None]  # None: deleted by an earlier step
    _used: dict[str, Usage]  # by earlier steps, for each path with a quota
    _changes: list[Change]

    def open_session(self, operation: OpenSession) -> tuple[Txn | None, Result]:
        self._changes.append(SessionOpened(operation.session_id, operation.timeout_ms, operation.password))
        return self.finish([_DONE])

    def close_session(self, operation: CloseSession) -> tuple[Txn | None, Result]:
        session_id = operation.session_id
        self._identities = None  # the nodes go, whoever owns what is above them
        for path in sorted(self._state.ephemerals.get(session_id, ()), reverse=True):
            self.step(Delete(path))
        if session_id in self._state.sessions:
            self._changes.append(SessionClosed(session_id))
        return self.finish([_DONE])

    def multi(self, operation: Multi) -> tuple[Txn | None, Result]:
        answers: list[StepResult] = []
        for step in operation.steps:
            answer = self.step(step)
            if answer.code is not OK:
                return None, self._failed(operation, len(answers), answer)
            answers.append(answer)
        return self.finish(answers)

    def finish(self, answers: list[StepResult]) -> tuple[Txn | None, Result]:
        if not self._changes:
            return None, Result(OK, self._zxid - 1, answers)
        txn = txn_of(self._zxid, self._now_ms, tuple(self._changes))
        return txn, result_of(OK, self._zxid, answers)

    def _failed(self, operation: Multi, index: int, answer: StepResult) -> Result:
        """As ZooKeeper answers: OK before the step that failed, inconsistency behind it."""
        after = [StepResult(Code.RUNTIME_INCONSISTENCY)] * (len(operation.steps) - index - 1)
        return Result(answer.code, self._zxid - 1, [_DONE] * index + [answer] + after)

    def step(self, step: Step) -> StepResult:
        if isinstance(step, Create):
            return self._create(step)
        if isinstance(step, SetData):
            written = self._find(step.path)
            if written is not None:  # so its path is legal
                return self._set_data(step, written)
        if isinstance(step, Refusal):
            return StepResult(step.code)
        node = self._find(step.path)
        if not paths.is_legal(step.path):
            return StepResult(Code.BAD_ARGUMENTS)
        if isinstance(step, Delete):
            return self._delete(step)
        if isinstance(step, SetAcl):
            return self._set_acl(step)
        if node is None or isinstance(step, SetData):
            return StepResult(Code.NO_NODE)
        return self._check(step, node)

    def _create(self, step: Create) -> StepResult:
        path = step.path
        # A sequential node may consist of its number alone ("/queue/").
        if not paths.is_legal(path + "0" if step.sequential else path):
            return StepResult(Code.BAD_ARGUMENTS)
        acl = OPEN_ACL if step.acl is OPEN_ACL else resolve(step.acl, self._identities)
        if acl is None:
            return StepResult(Code.INVALID_ACL)
        parent_path = path[: path.rfind("/")] or "/"
        parent = self._find(parent_path)
        if parent is None:
            # The root is its own parent and always there.
            return StepResult(Code.NO_NODE)
        if parent.acl is not OPEN_ACL and not permits(parent.acl, Perms.CREATE, self._identities):
            return StepResult(Code.NO_AUTH)
        if step.sequential:
            path = f"{path}{parent.child_creations:010d}"
        if self._find(path) is not None:
            return StepResult(Code.NODE_EXISTS)
        if parent.ephemeral_owner != NO_SESSION and is_session(parent.ephemeral_owner):
            return StepResult(Code.NO_CHILDREN_FOR_EPHEMERALS)
        data = step.data
        size = len(data) if data else 0
        if self._has_quotas and not self._fits(path, Usage(1, size)):
            return StepResult(Code.QUOTA_EXCEEDED)
        owner = self._owner(step)
        self._edit(parent_path, parent).child_created(self._zxid)
        node = NodeNumbers(self._zxid, self._now_ms, size, owner, acl)
        self._edited[path] = node
        self._changes.append(Created(path, data, owner, acl))
        return StepResult(OK, path, node.stat())

    def _owner(self, step: Create) -> int:
        if step.ephemeral:
            return self._session_id
        if step.container:
            return CONTAINER
        return NO_SESSION if step.ttl_ms == NO_TTL else ttl_owner(step.ttl_ms)

    def _delete(self, step: Delete) -> StepResult:
        path = step.path
        if path in paths.RESERVED:
            return StepResult(Code.BAD_ARGUMENTS)
        parent_path = paths.parent_of(path)
        parent = self._find(parent_path)
        if parent is None:
            return StepResult(Code.NO_NODE)
        if not permits(parent.acl, Perms.DELETE, self._identities):
            return StepResult(Code.NO_AUTH)
        node = self._find(path)
        if node is None:
            return StepResult(Code.NO_NODE)
        if step.version not in (ANY_VERSION, node.version):
            return StepResult(Code.BAD_VERSION)
        if node.child_count:
            return StepResult(Code.NOT_EMPTY)
        self._edit(parent_path, parent).child_deleted(self._zxid)
        self._edited[path] = None
        self._changes.append(Deleted(path))
        if self._has_quotas:
            self._use(path, Usage(-1, -node.data_length))
        return _DONE

    def _set_data(self, step: SetData, node: NodeNumbers) -> StepResult:
        if node.acl is not OPEN_ACL and not permits(node.acl, Perms.WRITE, self._identities):
            return StepResult(Code.NO_AUTH)
        data = step.data
        size = len(data) if data else 0
        if self._has_quotas and not self._fits(step.path, Usage(0, size - node.data_length)):
            return StepResult(Code.QUOTA_EXCEEDED)
        if step.version not in (ANY_VERSION, node.version):
            return StepResult(Code.BAD_VERSION)
        edited = self._edit(step.path, node)
        edited.data_set(size, self._zxid, self._now_ms)
        self._changes.append(data_set_of(step.path, data))
        return step_result(OK, None, edited.stat())

    def _set_acl(self, step: SetAcl) -> StepResult:
        acl = resolve(step.acl, self._identities)
        if acl is None:
            return StepResult(Code.INVALID_ACL)
        node = self._find(step.path)
        if node is None:
            return StepResult(Code.NO_NODE)
        if not permits(node.acl, Perms.ADMIN, self._identities):
            return StepResult(Code.NO_AUTH)
        if step.version not in (ANY_VERSION, node.aversion):
            return StepResult(Code.BAD_VERSION)
        edited = self._edit(step.path, node)
        edited.acl_set(acl)
        self._changes.append(AclSet(step.path, acl))
        return StepResult(OK, None, edited.stat())

    def _check(self, step: Check, node: NodeNumbers) -> StepResult:
        if not permits(node.acl, Perms.READ, self._identities):
            return StepResult(Code.NO_AUTH)
        return _DONE if step.version in (ANY_VERSION, node.version) else StepResult(Code.BAD_VERSION)

    def _find(self, path: str) -> NodeNumbers | None:
        if path in self._edited:
            return self._edited[path]
        return self._nodes.get(path)

    def _edit(self, path: str, node: NodeNumbers) -> NodeNumbers:
        edited = self._edited.get(path)
        if edited is None:
            edited = self._edited[path] = node.numbers()
        return edited

    # Quotas

    def _fits(self, path: str, added: Usage) -> bool:
        """Whether the quota above `path`, if there is one, leaves room; what fits is taken."""
        prefix = self._state.quotas.prefix_of(path)
        if prefix is None:
            return True
        limits = self._nodes[quotas.limits_path(prefix)].data
        usage_node = self._nodes.get(quotas.usage_path(prefix))
        used = quotas.decode_usage(usage_node.data if usage_node else None).plus(
            self._used.get(prefix, quotas.NOTHING)
        )
        if quotas.exceeds(prefix, limits, used, added):
            return False
        self._use(path, added)
        return True

    def _use(self, path: str, added: Usage) -> None:
        prefix = self._state.quotas.prefix_of(path)
        if prefix is not None:
            self._used[prefix] = self._used.get(prefix, quotas.NOTHING).plus(added)


def _decision(state: State, session_id: int, now_ms: int, identities: Sequence[Identity] | None) -> _Decision:
    # Field by field, as what every request makes: compiled, a call would make objects of its arguments.
    decision = _Decision.__new__(_Decision)
    decision._state = state
    decision._nodes = state.nodes
    decision._zxid = state.last_zxid + 1
    decision._now_ms = now_ms
    decision._session_id = session_id
    decision._identities = identities
    decision._has_quotas = bool(state.quotas.prefixes)
    decision._edited = {}
    decision._used = {}
    decision._changes = []
    return decision
