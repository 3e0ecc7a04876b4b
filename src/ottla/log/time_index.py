"""`.timeindex`: from a timestamp to an offset, sparsely.

Entry, 12 bytes: timestamp (int64), offset relative to the segment's base (int32). It says that no record up
to that offset has a larger timestamp: a search for the first record at or after a time starts behind the
last entry whose timestamp is smaller.
"""

from __future__ import annotations

from struct import Struct

from ottla.log.sparse_index import SparseIndex

ENTRY_BYTES = 12


class TimeIndex(SparseIndex):
    __slots__ = ()
    ENTRY = Struct(">qi")
    _KEY_TYPE = "q"
    _OFFSET_FIELD = 1

    def maybe_append(self, timestamp: int, relative_offset: int) -> None:
        """Add the largest timestamp so far, if it is larger than what the index knows."""
        last = self.last()
        if timestamp > (last[0] if last is not None else -1):
            self.append(timestamp, relative_offset)
