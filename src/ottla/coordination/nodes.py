"""One znode: its numbers, what they do at each change, and its content. Pure data, no tree."""

from __future__ import annotations

from typing import Final

from ottla.coordination.acls import OPEN_ACL, AccessList
from ottla.coordination.operations import ANY_VERSION
from ottla.coordination.owners import NO_SESSION
from ottla.coordination.stat import Stat

_INT_MAX: Final = 2**31 - 1


def _wrapped(number: int) -> int:
    """Counters have 32 bits on ZooKeeper's wire, and go on from the lowest number behind the highest."""
    return number if -_INT_MAX - 1 <= number <= _INT_MAX else (number + 2**31) % 2**32 - 2**31


def next_version(version: int) -> int:
    """A version never becomes ANY_VERSION: nobody could ask for it (ZOOKEEPER-4743)."""
    if 0 <= version < _INT_MAX:
        return version + 1
    following = _wrapped(version + 1)
    return 0 if following == ANY_VERSION else following


class NodeNumbers:
    """A znode without its content: all that a decision needs to know, and all that Stat tells."""

    __slots__ = (
        "acl",  # who may do what; one object for equal lists
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

    def __init__(
        self, zxid: int, time_ms: int, data_length: int, ephemeral_owner: int, acl: AccessList
    ) -> None:
        self.czxid = self.mzxid = self.pzxid = zxid
        self.ctime_ms = self.mtime_ms = time_ms
        self.version = self.aversion = self.child_creations = self.child_count = 0
        self.data_length = data_length
        self.ephemeral_owner = ephemeral_owner
        self.acl = acl

    def stat(self) -> Stat:
        # Field by field: compiled, a call would make objects of eleven numbers.
        stat = Stat.__new__(Stat)
        stat.czxid = self.czxid
        stat.mzxid = self.mzxid
        stat.ctime_ms = self.ctime_ms
        stat.mtime_ms = self.mtime_ms
        stat.version = self.version
        # Creations and deletions, the latter being the creations that are no longer there.
        stat.cversion = _wrapped(2 * self.child_creations - self.child_count)
        stat.aversion = self.aversion
        stat.ephemeral_owner = self.ephemeral_owner
        stat.data_length = self.data_length
        stat.num_children = self.child_count
        stat.pzxid = self.pzxid
        return stat

    def numbers(self) -> NodeNumbers:
        """A copy to work on."""
        copy = NodeNumbers.__new__(NodeNumbers)
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
        copy.acl = self.acl
        return copy

    def child_created(self, zxid: int) -> None:
        self.child_creations = _wrapped(self.child_creations + 1)
        self.child_count += 1
        self.pzxid = zxid

    def child_deleted(self, zxid: int) -> None:
        self.child_count -= 1
        self.pzxid = zxid

    def data_set(self, data_length: int, zxid: int, time_ms: int) -> None:
        self.version = next_version(self.version)
        self.data_length = data_length
        self.mzxid = zxid
        self.mtime_ms = time_ms

    def acl_set(self, acl: AccessList) -> None:
        self.aversion = next_version(self.aversion)
        self.acl = acl


class Node(NodeNumbers):
    __slots__ = (
        "children",  # names; None until the first child, because most nodes are leaves
        "data",
        "snapshot_mark",  # the newest snapshot that holds the node as it was when that snapshot began
    )

    def __init__(
        self,
        data: bytes | None,
        zxid: int = 0,
        time_ms: int = 0,
        ephemeral_owner: int = NO_SESSION,
        acl: AccessList = OPEN_ACL,
        mark: int = 0,
    ) -> None:
        NodeNumbers.__init__(self, zxid, time_ms, len(data) if data else 0, ephemeral_owner, acl)
        self.data = data
        self.children: set[str] | None = None
        self.snapshot_mark = mark

    def add_child(self, name: str) -> None:
        """Not a change: the numbers of the node say already that it has the child."""
        if self.children is None:
            self.children = set()
        self.children.add(name)
        self.child_count += 1
