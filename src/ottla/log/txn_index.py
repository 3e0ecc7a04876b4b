"""`.txnindex`: the aborted transactions that ended in a segment, so that read_committed can leave them out.

Entry, 34 bytes: int16 version (0), int64 producer id, int64 first offset, int64 last offset (the marker's),
int64 last stable offset when it was written. Entries are in the order of their markers. A segment without
aborted transactions has no such file. An entry is written before its marker and synced in the marker's round.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct

from ottla.log.files import Buffer
from ottla.log.open_files import OpenFiles, PooledFile
from ottla.model.errors import CorruptData
from ottla.model.values import NamedTuple

_ENTRY = Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size
_VERSION = 0
_BLOCK_ENTRIES = 64  # read at once

ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def encode_aborted(transaction: AbortedTransaction) -> bytes:
    return _ENTRY.pack(_VERSION, *transaction)


def decode_aborted(data: Buffer) -> list[AbortedTransaction]:
    if len(data) % _ENTRY.size:
        raise CorruptData(
            f"a transaction index has entries of {_ENTRY.size} bytes, this one {len(data)} bytes"
        )
    transactions = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptData(f"transaction index entries have version {_VERSION}, this one {version}")
        transactions.append(AbortedTransaction(*fields))
    return transactions


class TransactionIndex:
    """The index of one segment; its file is made for the first transaction that is aborted there."""

    __slots__ = ("_count", "_pool", "file", "path")

    def __init__(self, pool: OpenFiles, path: str, file_bytes: int | None = None) -> None:
        self.file: PooledFile | None = pool.existing(path) if file_bytes is not None else None
        self._pool = pool
        self.path = path
        self._count = (file_bytes or 0) // _ENTRY.size

    def __len__(self) -> int:
        return self._count

    def append(self, transaction: AbortedTransaction) -> PooledFile:
        """Returns the file, which must be synced, and its name too. OSError: nothing was appended."""
        if self.file is None:
            self.file = self._pool.create(self.path)
        handle = self.file.handle()
        handle.size = self._count * _ENTRY.size  # what a failed append left behind is overwritten
        handle.append([encode_aborted(transaction)])
        self._count += 1
        return self.file

    def entries(self, start: int = 0) -> Iterator[AbortedTransaction]:
        assert self.file is not None or not self._count
        while start < self._count:
            assert self.file is not None
            count = min(_BLOCK_ENTRIES, self._count - start)
            data = self.file.pread(count * _ENTRY.size, start * _ENTRY.size)
            yield from decode_aborted(data)
            start += count

    def ending_from(self, offset: int) -> Iterator[AbortedTransaction]:
        """Those whose marker is at `offset` or behind it."""
        return self.entries(bisect_left(range(self._count), offset, key=self._last_offset))

    def _last_offset(self, at: int) -> int:
        return next(self.entries(at)).last_offset

    def truncate_to(self, offset: int) -> None:
        """Drop those whose marker is at `offset` or behind it."""
        if self._count:
            self._keep(bisect_left(range(self._count), offset, key=self._last_offset))

    def trust_up_to(self, offset: int) -> None:
        """After a crash: entries of markers that were synced hold; what follows them may be anything."""
        kept = 0
        last_before = -1
        try:
            for entry in self.entries():
                if not last_before < entry.last_offset < offset:
                    break
                last_before = entry.last_offset
                kept += 1
        except CorruptData:
            pass  # not synced, so not trusted: the log tells
        self._keep(kept)

    def _keep(self, count: int) -> None:
        if self.file is not None:
            self._count = count
            self.file.handle().truncate(count * _ENTRY.size)
