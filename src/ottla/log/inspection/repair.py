"""Does what a repair plan says, under the directory's lock. What it takes away is kept beside, as `.removed`.

Each step is durable before the next one begins, and may be done again: a repair that was interrupted is
completed by another one.
"""

from __future__ import annotations

import os

from ottla.log import file_names
from ottla.log.files import FileHandle, Files
from ottla.log.inspection.repair_plan import (
    PutAside,
    RebuildIndexes,
    RebuildTxnIndexes,
    RemoveBytes,
    Replace,
    Step,
)
from ottla.log.inspection.txn_rebuild import rebuild_txn_indexes
from ottla.log.open_files import OpenFiles
from ottla.log.reindexing import rebuild_indexes
from ottla.log.segment import load_segment
from ottla.model.configs import DEFAULT_TOPIC_CONFIG
from ottla.model.limits import MIB

REMOVED = ".removed"
_COPY_BYTES = 4 * MIB


def perform(files: Files, step: Step) -> None:
    """One step. The caller holds the lock. OSError: the disk would not; nothing was lost."""
    match step:
        case RemoveBytes(path, position, end):
            _remove_bytes(files, path, position, end)
        case PutAside(path):
            _put_aside(files, path)
        case Replace(path, content):
            _replace(files, path, content)
        case RebuildIndexes(path):
            _rebuild_indexes(files, path)
        case RebuildTxnIndexes(path):
            for index_path, content in rebuild_txn_indexes(files, path).items():
                _replace(files, index_path, content)
    files.sync_directory(step.path if isinstance(step, RebuildTxnIndexes) else os.path.dirname(step.path))


def _remove_bytes(files: Files, path: str, position: int, end: int) -> None:
    handle = files.open(path)
    try:
        kept = _free_name(files, f"{path}.{position}{REMOVED}")
        _copy(files, handle, kept, [(position, end)])
        files.sync_directory(os.path.dirname(path))
        if end >= handle.size:
            handle.truncate(position)
            handle.sync()
            return
        temporary = path + ".tmp"
        _copy(files, handle, temporary, [(0, position), (end, handle.size)])
    finally:
        handle.close()
    files.rename(temporary, path)


def _copy(files: Files, source: FileHandle, path: str, ranges: list[tuple[int, int]]) -> None:
    target = files.create_anew(path)
    try:
        for position, end in ranges:
            while position < end:
                part = source.pread(min(_COPY_BYTES, end - position), position)
                target.append([part])
                position += len(part)
        target.sync()
    finally:
        target.close()


def _replace(files: Files, path: str, content: bytes) -> None:
    if files.exists(path):
        before = files.read_all(path)
        if before == content:
            return
        files.write_atomically(_free_name(files, path + REMOVED), before)
    files.write_atomically(path, content)


def _put_aside(files: Files, path: str) -> None:
    if files.exists(path):
        files.rename(path, _free_name(files, path + REMOVED))


def _free_name(files: Files, path: str) -> str:
    """An earlier repair's copy is never overwritten."""
    number, name = 1, path
    while files.exists(name):
        number += 1
        name = f"{path}.{number}"
    return name


def _rebuild_indexes(files: Files, log_path: str) -> None:
    stem = log_path.removesuffix(file_names.LOG)
    for suffix in (file_names.OFFSET_INDEX, file_names.TIME_INDEX):
        _put_aside(files, stem + suffix)
    base_offset = file_names.parse_offset(os.path.basename(log_path))
    assert base_offset is not None
    segment = load_segment(OpenFiles(files), os.path.dirname(log_path), base_offset)
    rebuild_indexes(segment, DEFAULT_TOPIC_CONFIG.index_interval_bytes)
    segment.release()
