"""A cleaned segment takes the place of others, by Kafka's renames; a crash at any point loses nothing:

    begin     .cleaned → .swap                  a start that finds both drops the new segment
    replace   the old ones → .deleted           a start that finds .swap completes the swap
    finish    .swap → the segment's own names   and a start that finds .deleted removes it

Between two steps the directory is synced: a power cut may else keep a later rename and lose an earlier one.
The steps are the owner's and short; `sync` is for a worker thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from enum import Enum, auto

from ottla.log import file_names
from ottla.log.open_files import OpenFiles
from ottla.log.segment import Segment, load_segment, rename_deleted
from ottla.log.segment_list import SegmentList

_FILES_MIN = 3  # the log and its two indexes; not all have one of transactions


class Stage(Enum):
    CLEANED = auto()  # nothing has happened yet
    BEGUN = auto()
    REPLACED = auto()
    FINISHED = auto()
    UNDONE = auto()  # something else happened to the log first


class SegmentSwap:
    def __init__(
        self,
        pool: OpenFiles,
        directory: str,
        segments: SegmentList,
        base_offset: int,
        replaced: Sequence[int],
    ) -> None:
        self.stage = Stage.CLEANED
        self._pool = pool
        self._files = pool.files
        self._directory = directory
        self._segments = segments
        self._base_offset = base_offset
        self._replaced = replaced  # base offsets of the old segments
        self._new: Segment | None = None

    @property
    def is_over(self) -> bool:
        return self.stage in (Stage.FINISHED, Stage.UNDONE)

    def step(self) -> list[str]:
        """The next step; returns files that are to be removed. After an OSError it can be tried again."""
        removable: list[str] = []
        match self.stage:
            case Stage.CLEANED:
                if len(self._paths(file_names.CLEANED)) < _FILES_MIN:
                    raise FileNotFoundError(f"no cleaned segment {self._base_offset} in {self._directory}")
                self._rename(file_names.CLEANED, file_names.SWAP)
                self.stage = Stage.BEGUN
            case Stage.BEGUN:
                removable = self._replace()
                self.stage = Stage.REPLACED
            case Stage.REPLACED:
                self._rename(file_names.SWAP, "")
                assert self._new is not None
                self._new.moved(file_names.SWAP)
                self.stage = Stage.FINISHED
            case _:
                raise AssertionError(self.stage)
        return removable

    def sync(self) -> None:
        """In a worker thread, after every step."""
        with contextlib.suppress(FileNotFoundError):  # the log was deleted in the meantime
            self._files.sync_directory(self._directory)

    def settle(self) -> None:
        """Something is about to change the log's segments: undo what was only begun, else complete it. Waits
        for the disk, but is met rarely.
        """
        if self.stage in (Stage.CLEANED, Stage.BEGUN):
            for path in self._paths(file_names.SWAP) + self._paths(file_names.CLEANED):
                self._files.remove(path)
            self.sync()
            self.stage = Stage.UNDONE
        elif self.stage is Stage.REPLACED:
            self.sync()
            self.step()
            self.sync()

    def _replace(self) -> list[str]:
        """From here on the new segment is read, under its name for the time being."""
        if self._new is None:
            self._new = load_segment(self._pool, self._directory, self._base_offset, stage=file_names.SWAP)
            self._old = self._segments.replace(self._replaced, self._new)
        return [path for segment in self._old for path in rename_deleted(self._files, segment)]

    def _rename(self, stage: str, next_stage: str) -> None:
        for path in self._paths(stage):
            self._files.rename(path, path.removesuffix(stage) + next_stage)

    def _paths(self, stage: str) -> list[str]:
        stem = os.path.join(self._directory, file_names.offset_name(self._base_offset, ""))
        paths = [stem + suffix + stage for suffix in file_names.SEGMENT_SUFFIXES]
        return [path for path in paths if self._files.exists(path)]
