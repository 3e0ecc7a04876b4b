"""ZooKeeper's Stat: the numbers of a znode at one moment. Pure data."""

from __future__ import annotations

from collections.abc import Iterator


class Stat:
    """In the order of ZooKeeper's own structure. Nearly every answer holds one, so it is a class of its own
    and no tuple: eleven numbers of C where it is compiled.
    """

    __slots__ = (
        "aversion",  # changes of its access list
        "ctime_ms",
        "cversion",  # children created and deleted
        "czxid",  # transaction that created the node
        "data_length",
        "ephemeral_owner",  # session it lives with, or what owners.py knows
        "mtime_ms",
        "mzxid",  # transaction that last changed its data
        "num_children",
        "pzxid",  # transaction that last created or deleted a child
        "version",  # changes of its data
    )

    def __init__(
        self,
        czxid: int,
        mzxid: int,
        ctime_ms: int,
        mtime_ms: int,
        version: int,
        cversion: int,
        aversion: int,
        ephemeral_owner: int,
        data_length: int,
        num_children: int,
        pzxid: int,
    ) -> None:
        self.czxid = czxid
        self.mzxid = mzxid
        self.ctime_ms = ctime_ms
        self.mtime_ms = mtime_ms
        self.version = version
        self.cversion = cversion
        self.aversion = aversion
        self.ephemeral_owner = ephemeral_owner
        self.data_length = data_length
        self.num_children = num_children
        self.pzxid = pzxid

    def __iter__(self) -> Iterator[int]:
        return iter(
            (
                self.czxid,
                self.mzxid,
                self.ctime_ms,
                self.mtime_ms,
                self.version,
                self.cversion,
                self.aversion,
                self.ephemeral_owner,
                self.data_length,
                self.num_children,
                self.pzxid,
            )
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stat) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Stat{tuple(self)}"
