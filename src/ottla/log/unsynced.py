"""What the next sync round of a log has to make durable, besides what was appended to its active segment."""

from __future__ import annotations

import os

from ottla.log.open_files import PooledFile
from ottla.model.values import dataclass, field


@dataclass(slots=True)
class Unsynced:
    files: list[PooledFile] = field(default_factory=list)  # in the order of offsets
    directories: set[str] = field(default_factory=set)  # whose names changed
    renames: list[tuple[str, str]] = field(default_factory=list)  # (from, to), when the files are durable

    def __bool__(self) -> bool:
        return bool(self.files or self.directories or self.renames)

    def add_names(self, directory: str) -> None:
        """The directory, and its own name above it, may have changed."""
        self.directories |= {directory, os.path.dirname(directory)}

    def take(self) -> Unsynced:
        """Everything, for the round that begins; what is added from now on is the next one's."""
        taken = Unsynced(self.files, self.directories, self.renames)
        self.files, self.directories, self.renames = [], set(), []
        return taken
