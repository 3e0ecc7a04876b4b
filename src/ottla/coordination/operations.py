"""What may be asked of the tree and what it answers: ZooKeeper's operations, codes and Stat. Pure data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

ANY_VERSION = -1
NO_SESSION = 0


class Code(IntEnum):
    """ZooKeeper's result codes, as its wire carries them."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2  # in a failed multi: the operations behind the one that failed
    MARSHALLING_ERROR = -5
    UNIMPLEMENTED = -6
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114


class Stat(NamedTuple):
    """A znode's numbers, in the order of ZooKeeper's own structure."""

    czxid: int  # transaction that created the node
    mzxid: int  # transaction that last changed its data
    ctime_ms: int
    mtime_ms: int
    version: int  # changes of its data
    cversion: int  # children created and deleted
    aversion: int  # changes of its access list
    ephemeral_owner: int  # session it lives with, or NO_SESSION
    data_length: int
    num_children: int
    pzxid: int  # transaction that last created or deleted a child


@dataclass(slots=True, frozen=True)
class Create:
    path: str
    data: bytes | None = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(slots=True, frozen=True)
class Delete:
    path: str
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class SetData:
    path: str
    data: bytes | None
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class Check:
    """Nothing changes; the multi it is part of fails unless the node has this version."""

    path: str
    version: int = ANY_VERSION


@dataclass(slots=True, frozen=True)
class CloseSession:
    """The session ends; the ephemeral nodes it owns go in the same transaction."""

    session_id: int


Step = Create | Delete | SetData | Check


@dataclass(slots=True, frozen=True)
class Multi:
    """Steps that happen together or not at all. Each sees what the ones before it did."""

    steps: Sequence[Step]


Operation = Create | Delete | SetData | Check | CloseSession | Multi


class StepResult(NamedTuple):
    code: Code
    path: str | None = None  # what Create created (a sequential one got its number)
    stat: Stat | None = None  # of Create and SetData: the node right after the step


class Result(NamedTuple):
    """The answer to an operation: its transaction, or the code of the step that failed."""

    code: Code
    zxid: int  # of the transaction; of the newest one before it when the operation failed
    steps: Sequence[StepResult]  # one for each step of a Multi, one for anything else

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
