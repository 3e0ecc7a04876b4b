"""What every coordinator has in common: its records, which partition a key belongs to, and what a state is.

The hosting of such a state (its internal topic, loading, appending, waiting for the disk) is the server's.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

from ottla.model.offsets import NO_PRODUCER_ID
from ottla.model.values import NamedTuple


class StateRecord(NamedTuple):
    """One change of a coordinator's state, as it lies in its log."""

    key: bytes
    value: bytes | None  # None: forget the key (a tombstone)


class Now(NamedTuple):
    """When something is decided."""

    monotonic_ms: int  # for deadlines
    wall_ms: int  # for what goes into records


class StateMachine(Protocol):
    """The state that one partition of an internal topic holds."""

    def apply(self, record: StateRecord, producer_id: int = NO_PRODUCER_ID) -> None:
        """Changes the state: live, and when the log is read after a start.

        With a producer id the record belongs to its transaction, and counts when that is committed. Bytes
        that no coordinator wrote are skipped with a warning.
        """
        ...

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        """A transaction that wrote to this partition has ended."""
        ...


@lru_cache(maxsize=10_000)
def partition_for(key: str, count: int) -> int:
    """The partition of an internal topic with `count` partitions that a group or transactional id belongs to.

    Java's `String.hashCode`, which is over UTF-16 units; the absolute value of its least integer is zero.
    """
    data = key.encode("utf-16-be", "surrogatepass")
    hashed = 0
    for position in range(0, len(data), 2):
        hashed = (31 * hashed + (data[position] << 8 | data[position + 1])) & 0xFFFF_FFFF
    if hashed >= 0x8000_0000:
        hashed = 0x1_0000_0000 - hashed
    return (hashed if hashed != 0x8000_0000 else 0) % count
