"""What a look at a batch can find, by the kernel's numbers, and the error that broken records end in."""

from __future__ import annotations

from enum import IntEnum


class Finding(IntEnum):
    """What `check_records` says of the records."""

    SOUND = 0
    BROKEN = 1  # at a position: a length, a count or a number that cannot be
    TRAILING = 2  # bytes after the last record, from a position
    OFFSET_GAP = 3  # a record's offset does not follow the one before it
    KEYLESS = 4  # a record without the key it must have


class Fault(IntEnum):
    """Why a produced batch may not be appended, in the order in which it is looked for."""

    NONE = 0
    NOT_ONE_BATCH = 1  # not exactly one batch of format 2
    ZSTD_TOO_EARLY = 2
    BASE_OFFSET = 3
    TOO_LARGE = 4
    CRC = 5
    CODEC = 6
    COUNT = 7
    CONTROL = 8
    SEQUENCE = 9
    TIMESTAMP_TYPE = 10
    LZ4_BLOCKS = 11
    TIMESTAMP = 12


class CorruptRecords(ValueError):
    """A batch whose checksum is right holds what no reader can use: broken records, compression or a bomb."""


class RowFault(IntEnum):
    """Why a row cannot become a record."""

    NONE = 0
    PARTITION = 1  # there is no such partition
    TIMESTAMP = 2  # before 1970, or beyond what a record can carry
    BUFFERS = 3  # the ends of the column do not fit its data
    HEADER_KEY = 4  # a header without a key


class Lacking(IntEnum):
    """Which room was too small for a record's part of a column."""

    NOTHING = 0
    ROWS = 1
    KEYS = 2
    VALUES = 3
    HEADERS = 4
    HEADER_KEYS = 5
    HEADER_VALUES = 6
