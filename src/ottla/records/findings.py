"""What a look at the records of a batch can find (the kernel's numbers), and the error it ends in."""

from __future__ import annotations

from enum import IntEnum


class Finding(IntEnum):
    SOUND = 0
    BROKEN = 1  # at a position: a length, a count or a number that cannot be
    TRAILING = 2  # bytes after the last record, from a position
    OFFSET_GAP = 3  # a record's offset does not follow the one before it
    KEYLESS = 4  # a record without the key it must have


class CorruptRecords(ValueError):
    """A batch whose checksum is right holds what no reader can use: broken records, compression or a bomb."""
