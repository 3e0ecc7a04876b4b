"""The cleaner's map: for every key of the dirty part of a log, the offset of its last record.

24 bytes a slot (a hash of 16, an offset of 8), all allocated at once: the map's size is what bounds a pass.
When it is full the pass ends there, and the next one goes on from that offset.
"""

from __future__ import annotations

import os

from ottla.records import kernel_choice
from ottla.records.batch import BatchHeader, Bytes
from ottla.records.plain_records import broken

SLOT_BYTES = 24
_LOAD_FACTOR_MIN = 0.01


class DedupeMap:
    def __init__(self, slots: int, keys_max: int) -> None:
        """Room for `keys_max` keys, which must leave at least one of the `slots` empty."""
        assert 0 < keys_max < slots
        self.latest_offset = -1  # everything up to it has been put in
        self.key_count = 0
        self._keys_max = keys_max
        self._table = memoryview(bytearray(slots * SLOT_BYTES)).cast("Q")
        self._secret = int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8))

    def put(self, header: BatchHeader, plain: Bytes, start_offset: int) -> bool:
        """The keys of a batch's records from `start_offset` on; False when the map is full before its end."""
        read, reached, added, fault = kernel_choice.compaction_kernel.map_keys(
            plain,
            header.record_count,
            header.base_offset,
            header.last_offset_delta,
            start_offset,
            self._table,
            self._keys_max - self.key_count,
            *self._secret,
        )
        if fault >= 0:
            raise broken(header, read, fault)
        self.key_count += added
        if read < header.record_count:
            self.latest_offset = max(self.latest_offset, reached)
            return False
        return True

    def choose(
        self, header: BatchHeader, plain: Bytes, keep: bytearray, *, keep_tombstones: bool
    ) -> tuple[int, int]:
        """Marks in `keep` which records of a batch stay; how many, and how many of those are tombstones."""
        kept, tombstones, _, fault = kernel_choice.compaction_kernel.choose_records(
            plain,
            header.record_count,
            header.base_offset,
            header.last_offset_delta,
            self._table,
            self.latest_offset,
            keep_tombstones,
            *self._secret,
            keep,
        )
        if fault >= 0:
            raise broken(header, -1, fault)
        return kept, tombstones


def map_for(offset_count: int, bytes_max: int, load_factor: float) -> DedupeMap:
    """A map for at most `offset_count` keys that takes no more memory than it may, nor than it needs."""
    load_factor = min(max(load_factor, _LOAD_FACTOR_MIN), 1)
    slots_max = max(bytes_max // SLOT_BYTES, 2)
    slots = min(slots_max, max(int(offset_count / load_factor) + 2, 2))
    return DedupeMap(slots, max(min(int(slots * load_factor), slots - 1), 1))
