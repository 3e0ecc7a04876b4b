"""Space laid by for the day the disk is full: what is needed then to get out of it must still fit.

When a write finds the disk full, the ballast is given up: what frees space (checkpoints that let retention
drop files, the deletion of a topic) and a clean stop go on with its room, and appends are refused until the
ballast could be laid by again.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Callable
from typing import TypeVar

from ottla.log.disk_errors import is_full_disk
from ottla.log.files import Files
from ottla.model.limits import MIB

_log = logging.getLogger(__name__)

FILE_NAME = ".ottla_ballast"
BALLAST_BYTES = 4 * MIB
"""More than the largest checkpoint of 10,000 partitions, with room for some epochs, indexes and snapshots."""

T = TypeVar("T")


class Ballast:
    """Of one directory. `help` may run in a worker thread; all else is the owner's."""

    def __init__(self, files: Files, directory: str, size: int = BALLAST_BYTES) -> None:
        self.is_spent = False  # the disk is full: nothing may be appended
        self._files = files
        self._directory = directory
        self._path = os.path.join(directory, FILE_NAME)
        self._size = size
        if not (files.exists(self._path) and files.size(self._path) == size):
            self.is_spent = True
            if not self.maybe_lay_by():
                _log.error("%s: the disk is full; nothing is written until there is room", directory)

    def check(self) -> None:
        """Raises OSError(ENOSPC) while the disk is full: who appends must not take the room that is left."""
        if self.is_spent:
            raise OSError(errno.ENOSPC, "the disk is full; make room, or shorten retention", self._directory)

    def note(self, error: OSError) -> None:
        """An append failed with `error`; a full disk is remembered."""
        if is_full_disk(error):
            self._spend()

    def help(self, action: Callable[[], T]) -> T:
        """Do what must be possible on a full disk: `action` is tried again when there was no room."""
        try:
            return action()
        except OSError as error:
            if self.is_spent or not is_full_disk(error):
                raise
            self._spend()
            return action()

    def maybe_lay_by(self) -> bool:
        """Whether the disk has room again: twice the ballast, so that the next append does not end it."""
        try:
            if self._files.space(self._directory)[1] < 2 * self._size:
                return False
            handle = self._files.create_anew(self._path)
            try:
                handle.reserve(self._size)
            finally:
                handle.close()
        except OSError as error:
            if not is_full_disk(error):
                raise
            self._remove()
            return False
        self.is_spent = False
        return True

    def _spend(self) -> None:
        if not self.is_spent:
            self.is_spent = True
            _log.error("%s: the disk is full; nothing is written until there is room", self._directory)
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._files.remove(self._path)
