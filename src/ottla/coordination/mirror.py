"""A copy of some nodes of a tree that is elsewhere: as they were when they were last looked at. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.coordination.paths import name_of, parent_of
from ottla.coordination.stat import Stat


class Mirror:
    def __init__(self) -> None:
        self._nodes: dict[str, tuple[bytes | None, Stat]] = {}
        self._names: dict[str, set[str]] = {}  # of the children of a node

    def read(self, path: str) -> tuple[bytes | None, Stat] | None:
        return self._nodes.get(path)

    def exists(self, path: str) -> Stat | None:
        found = self._nodes.get(path)
        return None if found is None else found[1]

    def children(self, path: str) -> list[str] | None:
        return sorted(self._names.get(path, ())) if path in self._nodes else None

    def keep(self, path: str, data: bytes | None, stat: Stat) -> None:
        self._nodes[path] = data, stat
        if path != "/":
            self._names.setdefault(parent_of(path), set()).add(name_of(path))

    def keep_names(self, path: str, names: Iterable[str]) -> None:
        """The children of `path` are these; what is known of others is forgotten."""
        kept = set(names)
        for gone in self._names.get(path, set()) - kept:
            self.forget(child_path(path, gone))
        self._names[path] = kept

    def forget(self, path: str) -> None:
        """The node is gone, and what was below it."""
        for name in self._names.pop(path, ()):
            self.forget(child_path(path, name))
        self._nodes.pop(path, None)
        if path != "/":
            self._names.get(parent_of(path), set()).discard(name_of(path))


def child_path(path: str, name: str) -> str:
    return f"/{name}" if path == "/" else f"{path}/{name}"
