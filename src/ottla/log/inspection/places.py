"""What a path on the command line is: a data directory, a directory of logs, a partition, or one file."""

from __future__ import annotations

import os
from enum import Enum, auto

from ottla.log import checkpoints, directory_properties, file_names, leader_epochs
from ottla.log.files import Files
from ottla.log.inspection.directory_check import OFFSET_CHECKPOINTS, partition_names
from ottla.model.values import dataclass

_LOGS_OF_HOME = "log"  # where a broker's home keeps them
_SIGNS_OF_LOGS = {directory_properties.FILE_NAME, *OFFSET_CHECKPOINTS}


class PlaceKind(Enum):
    LOG_DIRECTORY = auto()
    PARTITION = auto()
    FILE = auto()


@dataclass(slots=True, frozen=True)
class Place:
    kind: PlaceKind
    path: str

    @property
    def log_directory(self) -> str:
        """The directory of `log.dirs` that it is, or lies in."""
        if self.kind is PlaceKind.LOG_DIRECTORY:
            return self.path
        above = os.path.dirname(self.path)
        is_partitions_file = file_names.parse_directory(os.path.basename(above)) is not None
        return os.path.dirname(above) if self.kind is PlaceKind.FILE and is_partitions_file else above


def find_place(files: Files, path: str) -> Place:
    """OSError when nothing is there; ValueError when it holds no logs."""
    path = os.path.abspath(path)
    try:
        names = dict(files.list_directory(path))
    except NotADirectoryError:
        return Place(PlaceKind.FILE, path)
    if _holds_log(files, path):
        return Place(PlaceKind.PARTITION, path)
    if names.keys() & _SIGNS_OF_LOGS or any(
        _holds_log(files, p) for p in partition_names(files, path).values()
    ):
        return Place(PlaceKind.LOG_DIRECTORY, path)
    if names.get(_LOGS_OF_HOME):
        return find_place(files, os.path.join(path, _LOGS_OF_HOME))
    raise ValueError(f"{path} is neither a data directory nor a partition's")


def _holds_log(files: Files, directory: str) -> bool:
    """A segment, or what lies in the directory of every partition."""
    return any(
        name == checkpoints.PARTITION_METADATA
        or (name.endswith(file_names.LOG) and file_names.parse_offset(name) is not None)
        for name, _ in files.list_directory(directory)
    )


def files_in(files: Files, place: Place) -> list[str]:
    """Every file that can be dumped, partition by partition, segments in order."""
    if place.kind is PlaceKind.FILE:
        return [place.path]
    if place.kind is PlaceKind.PARTITION:
        return _files_of_partition(files, place.path)
    known = [os.path.join(place.path, name) for name in (directory_properties.FILE_NAME, *OFFSET_CHECKPOINTS)]
    found = [path for path in known if files.exists(path)]
    for directory in partition_names(files, place.path).values():
        found += _files_of_partition(files, directory)
    return found


def _files_of_partition(files: Files, path: str) -> list[str]:
    names = [name for name, is_directory in files.list_directory(path) if not is_directory]
    others = [name for name in names if name in (checkpoints.PARTITION_METADATA, leader_epochs.FILE_NAME)]
    numbered = [
        name
        for name in names
        if file_names.parse_offset(name) is not None
        and name.endswith((*file_names.SEGMENT_SUFFIXES, file_names.SNAPSHOT))
    ]
    return [os.path.join(path, name) for name in (*others, *sorted(numbered, key=_reading_order))]


def _reading_order(name: str) -> tuple[str, int]:
    stem, _, suffix = name.partition(".")
    order = (file_names.SNAPSHOT, *file_names.SEGMENT_SUFFIXES)
    return stem, order.index(f".{suffix}") if f".{suffix}" in order else len(order)
