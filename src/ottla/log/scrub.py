"""Reading a log through, a piece at a time, to find damage before a consumer does.

The pieces are read in a worker thread; small batches are checked by the kernel and large ones by the library
of the checksum, both without the interpreter's lock, so that the owner does not notice. Looks at files only:
what damage means for the partition is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log.files import FileHandle, Files
from ottla.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.model.errors import CorruptData
from ottla.records import kernel_choice
from ottla.records.formats import header_at, verify_crc

PIECE_BYTES = 256 * 1024

_EPOCH_MAX = 2**31 - 1


class SegmentScrub:
    """One segment up to where it ended when this was made."""

    __slots__ = ("_end", "_end_offset", "_files", "_handle", "_next_offset", "_path", "_position", "segment")

    def __init__(self, files: Files, segment: Segment) -> None:
        self.segment = segment
        self._files = files
        self._handle: FileHandle | None = None  # of its own: the pool's belong to the owner thread
        self._path = segment.log.path
        self._position = 0
        self._end = segment.size
        self._next_offset = segment.base_offset
        self._end_offset = segment.base_offset + RELATIVE_OFFSET_MAX + 1

    @property
    def is_done(self) -> bool:
        return self._position >= self._end

    def is_of(self, segments: Sequence[Segment]) -> bool:
        """Whether what was read is still in the log, under the same name (the cleaner renames)."""
        return any(
            each is self.segment and each.log.path == self._path and each.size >= self._end
            for each in segments
        )

    def read_piece(self) -> int:
        """In a worker: check the next batches; how many bytes were read. CorruptData, OSError: damage."""
        handle = self._handle = self._handle or self._files.open(self._path, writable=False)
        data = handle.pread(min(PIECE_BYTES, self._end - self._position), self._position)
        header = header_at(data)
        if header is not None and header.size > len(data):  # larger than a piece
            data = handle.pread(min(header.size, self._end - self._position), self._position)
        if self._advance(data) == 0:
            raise CorruptData(
                f"{self._path} is damaged at position {self._position}, from offset {self._next_offset} on"
            )
        return len(data)

    def _advance(self, data: bytes) -> int:
        """Go on behind the batches at the beginning of `data` that are as they should be."""
        at = 0
        while at < len(data):
            at, self._next_offset, _, _ = kernel_choice.scan_kernel.pass_valid(
                data, at, len(data), self._next_offset, self._end_offset, 0, _EPOCH_MAX
            )
            header = header_at(data, at)
            if (
                header is None
                or header.size > len(data) - at
                or not self._next_offset <= header.base_offset <= header.last_offset < self._end_offset
                or not verify_crc(data, header, at)
            ):
                break
            self._next_offset = header.next_offset
            at += header.size
        self._position += at
        return at
