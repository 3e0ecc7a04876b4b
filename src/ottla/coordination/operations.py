"""What may be asked of the tree and what it answers: ZooKeeper's operations, codes and Stat. Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from ottla.coordination.acls import OPEN_ACL, Acl
from ottla.coordination.owners import TTL_MS_MAX
from ottla.coordination.stat import Stat
from ottla.model.values import NamedTuple

ANY_VERSION = -1
NO_TTL = -1


class Code(IntEnum):
    """ZooKeeper's result codes, as its wire carries them."""

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2  # in a failed multi: the operations behind the one that failed
    CONNECTION_LOSS = -4  # of a client: whether the operation was carried out is not known
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115
    SESSION_MOVED = -118
    NOT_READ_ONLY = -119
    NO_WATCHER = -121
    RECONFIG_DISABLED = -123
    QUOTA_EXCEEDED = -125
    THROTTLED_OP = -127  # the client has more than its share already


OK: Final = Code.OK
"""For those who need it all the time: to look a member of an enumeration up takes longer than to decide."""


class Create:
    __slots__ = ("acl", "container", "data", "ephemeral", "path", "sequential", "ttl_ms")

    def __init__(
        self,
        path: str,
        data: bytes | None = b"",
        ephemeral: bool = False,
        sequential: bool = False,
        acl: Sequence[Acl] = OPEN_ACL,
        container: bool = False,
        ttl_ms: int = NO_TTL,
    ) -> None:
        self.path = path
        self.data = data
        self.ephemeral = ephemeral
        self.sequential = sequential
        self.acl = acl
        self.container = container
        self.ttl_ms = ttl_ms

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Create)
            and (self.path, self.data, self.acl) == (other.path, other.data, other.acl)
            and (self.ephemeral, self.sequential) == (other.ephemeral, other.sequential)
            and (self.container, self.ttl_ms) == (other.container, other.ttl_ms)
        )


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class SetData:
    __slots__ = ("data", "path", "version")

    def __init__(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> None:
        self.path = path
        self.data = data
        self.version = version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SetData) and (self.path, self.data, self.version) == (
            other.path,
            other.data,
            other.version,
        )


class SetAcl(NamedTuple):
    path: str
    acl: Sequence[Acl]
    version: int = ANY_VERSION  # of the access list


class Check(NamedTuple):
    """Nothing changes; the multi it is part of fails unless the node has this version."""

    path: str
    version: int = ANY_VERSION


class Refusal(NamedTuple):
    """A step that makes no sense: it fails with `code`, and with it the multi it is part of."""

    code: Code
    path: str = ""


class OpenSession(NamedTuple):
    session_id: int
    timeout_ms: int
    password: bytes


class CloseSession(NamedTuple):
    """The session ends; the ephemeral nodes it owns go in the same transaction."""

    session_id: int


Step = Create | Delete | SetData | SetAcl | Check | Refusal


class Multi(NamedTuple):
    """Steps that happen together or not at all. Each sees what the ones before it did."""

    steps: Sequence[Step]


Operation = Step | Multi | OpenSession | CloseSession


def multi_bytes(steps: Sequence[Step]) -> int:
    """About what a multi of `steps` takes on ZooKeeper's wire, rather more than less."""
    size = 0
    for step in steps:
        data = step.data if isinstance(step, (Create, SetData)) else None
        size += 64 + len(step.path.encode()) + len(data or b"")
    return size


def create_of_flags(
    path: str, data: bytes | None, acl: Sequence[Acl], flags: int, ttl_ms: int = NO_TTL
) -> Create | Refusal:
    """A Create as ZooKeeper's wire asks for it: 1 ephemeral, 2 sequential, 3 both, 4 container, 5 with a TTL,
    6 sequential with a TTL.
    """
    with_ttl = flags in (5, 6)
    if not 0 <= flags <= 6 or (not 0 < ttl_ms <= TTL_MS_MAX if with_ttl else ttl_ms >= 0):
        return Refusal(Code.BAD_ARGUMENTS, path)
    return Create(
        path,
        data,
        ephemeral=flags in (1, 3),
        sequential=flags in (2, 3, 6),
        acl=acl,
        container=flags == 4,
        ttl_ms=ttl_ms if with_ttl else NO_TTL,
    )


class StepResult:
    __slots__ = ("code", "path", "stat")

    def __init__(self, code: Code, path: str | None = None, stat: Stat | None = None) -> None:
        self.code = code
        self.path = path  # what Create created (a sequential one got its number)
        self.stat = stat  # of Create, SetData and SetAcl: the node right after the step


class Result:
    """The answer to an operation: its transaction, or the code of the step that failed."""

    __slots__ = ("code", "steps", "zxid")

    def __init__(self, code: Code, zxid: int, steps: Sequence[StepResult]) -> None:
        self.code = code
        self.zxid = zxid  # of the transaction; of the newest one before it when the operation failed
        self.steps = steps  # one for each step of a Multi, one for anything else

    @property
    def ok(self) -> bool:
        return self.code is Code.OK

    @property
    def failed_step(self) -> int:
        """Index of the step that failed the operation, or -1."""
        for index, step in enumerate(self.steps):
            if step.code is not Code.OK:
                return index
        return -1


# What every request makes is made field by field: compiled, a call would make objects of its arguments.


def set_data_of(path: str, data: bytes | None, version: int) -> SetData:
    operation = SetData.__new__(SetData)
    operation.path = path
    operation.data = data
    operation.version = version
    return operation


def step_result(code: Code, path: str | None, stat: Stat | None) -> StepResult:
    result = StepResult.__new__(StepResult)
    result.code = code
    result.path = path
    result.stat = stat
    return result


def result_of(code: Code, zxid: int, steps: Sequence[StepResult]) -> Result:
    result = Result.__new__(Result)
    result.code = code
    result.zxid = zxid
    result.steps = steps
    return result
