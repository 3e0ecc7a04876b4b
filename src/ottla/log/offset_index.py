"""`.index`: from an offset to a position in the segment, sparsely.

Entry, 8 bytes: offset relative to the segment's base (int32), position (int32). The position is where a batch
begins, the offset is the last one in it: the batch holding an offset lies at or behind the position of the
last entry whose offset is not larger.
"""

from __future__ import annotations

from struct import Struct

from ottla.log.sparse_index import SparseIndex

ENTRY_BYTES = 8


class OffsetIndex(SparseIndex):
    __slots__ = ()
    ENTRY = Struct(">ii")
    _KEY_TYPE = "i"
    _OFFSET_FIELD = 0

    def position(self, relative_offset: int) -> int:
        """Where to start looking for the batch that holds the offset."""
        entry = self.floor(relative_offset)
        return entry[1] if entry is not None else 0
