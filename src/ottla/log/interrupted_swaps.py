"""At a start: what a stop in the middle of a compaction left is completed or dropped, by Kafka's rules.

Files ending in `.cleaned` are of a pass that was cut off, and so is a `.swap` whose other files were not
renamed yet: they go. Every other `.swap` is whole and synced; it takes the place of the segments whose
offsets it covers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from ottla.log import file_names
from ottla.log.open_files import OpenFiles
from ottla.log.segment import Segment, load_segment

_log = logging.getLogger(__name__)


def settle_interrupted_swaps(pool: OpenFiles, directory: str, names: Sequence[str]) -> list[str]:
    """The names that are there afterwards. Durable when it returns."""
    files = pool.files
    cleaned = [name for name in names if name.endswith(file_names.CLEANED)]
    swaps = [name for name in names if name.endswith(file_names.SWAP)]
    if not cleaned and not swaps:
        return list(names)
    unfinished_from = min((_offset(name) for name in cleaned), default=None)
    dropped = [name for name in swaps if unfinished_from is not None and _offset(name) >= unfinished_from]
    swaps = [name for name in swaps if name not in dropped]
    left = [name for name in names if not name.endswith((file_names.CLEANED, file_names.SWAP))]
    replaced = _replaced(pool, directory, swaps, left)
    # In this order: a `.swap` outlives the `.cleaned` that would condemn it, and what it replaces.
    for group in (dropped, cleaned, replaced):
        for name in group:
            files.remove(os.path.join(directory, name))
        if group:
            files.sync_directory(directory)
    for name in swaps:
        _log.info("%s: a compaction that was interrupted is completed with %s", directory, name)
        path = os.path.join(directory, name)
        files.rename(path, path.removesuffix(file_names.SWAP))
    if swaps:
        files.sync_directory(directory)
    completed = {name.removesuffix(file_names.SWAP) for name in swaps}
    return sorted((set(left) - set(replaced)) | completed)


def _replaced(pool: OpenFiles, directory: str, swaps: Sequence[str], names: Sequence[str]) -> list[str]:
    """Files of segments that lie in the offsets which a swapped one covers."""
    covered = []
    for name in swaps:
        if name == file_names.offset_name(_offset(name), file_names.LOG + file_names.SWAP):
            segment = load_segment(pool, directory, _offset(name), stage=file_names.SWAP)
            covered.append(range(segment.base_offset, max(_end_offset(segment), segment.base_offset + 1)))
            segment.release()
    return [
        name
        for name in names
        if name.endswith(file_names.SEGMENT_SUFFIXES) and any(_offset(name) in offsets for offsets in covered)
    ]


def _end_offset(segment: Segment) -> int:
    entry = segment.offset_index.last()
    end_offset = segment.base_offset
    for _, header in segment.headers(entry[1] if entry is not None else 0):
        end_offset = header.next_offset
    return end_offset


def _offset(name: str) -> int:
    offset = file_names.parse_offset(name)
    return -1 if offset is None else offset
