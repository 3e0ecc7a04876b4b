"""Bytes of a file, named instead of copied: what is read for a fetch, down to the socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log.files import FileHandle


class FileRange:
    """An answer carries it down to the socket, which sends it from there."""

    __slots__ = ("handle", "position", "size")

    def __init__(self, handle: FileHandle, position: int, size: int) -> None:
        self.handle = handle
        self.position = position
        self.size = size

    def read(self) -> bytes:
        return self.handle.pread(self.size, self.position)

    def __repr__(self) -> str:
        return f"FileRange({self.handle.name!r}, position={self.position}, size={self.size})"
