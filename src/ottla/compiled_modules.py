"""Which form of the modules that every request passes through is run: compiled, or as they are written.

A module with a `.pxd` of its name beside it is compiled at install time under its own name (setup.py); the
`.pxd` says which of its names have C types, the code is the same. Compiled modules know each other's layout,
so it is all of them or none: none without a compiler, with OTTLA_KERNEL=python, or in a checkout where a
source is newer than what was compiled of it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from types import ModuleType

_PACKAGE = os.path.dirname(__file__)  # pathlib would take a good part of the start of a command
_DECLARATION, _SOURCE, _COMPILED = ".pxd", ".py", EXTENSION_SUFFIXES[0]
_ROOMS = (
    "model",
    "protocol",
    "records",
    "log",
    "replica",
    "server",
    "server/handlers",
    "coordination",
    "protocol/zookeeper",
    "server/zookeeper",
    "client",
)  # that may have some


class _SourceFinder:
    """Finds the sources of modules beside which there is a compiled form, which Python would prefer."""

    def __init__(self, sources: dict[str, str]) -> None:
        self._sources = sources

    def find_spec(
        self, name: str, _path: object = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        source = self._sources.get(name)
        if source is None:
            return None
        from importlib.util import spec_from_file_location

        return spec_from_file_location(name, source)


def sources() -> dict[str, str]:
    """The files of modules that have a compiled form, by the modules' names."""
    found = {}
    for room in _ROOMS:
        directory = os.path.join(_PACKAGE, room)
        files = set(os.listdir(directory)) if os.path.isdir(directory) else set()  # none in a zip archive
        for declaration in sorted(name for name in files if name.endswith(_DECLARATION)):
            module = declaration.removesuffix(_DECLARATION)
            if module + _SOURCE in files:
                name = ".".join(("ottla", *room.split("/"), module))
                found[name] = os.path.join(directory, module + _SOURCE)
    return found


def are_usable() -> bool:
    """Whether all of them were compiled, and of what their sources are now."""
    return all(os.path.exists(_compiled(source)) for source in sources().values()) and not are_outdated()


def are_outdated() -> bool:
    """Whether a source in a checkout has changed since then. Elsewhere times of files say nothing."""
    project = os.path.dirname(os.path.dirname(_PACKAGE))
    if not os.path.exists(os.path.join(project, "setup.py")):
        return False
    for source in sources().values():
        declaration, compiled = source.removesuffix(_SOURCE) + _DECLARATION, _compiled(source)
        newest = max(os.path.getmtime(source), os.path.getmtime(declaration))
        if os.path.exists(compiled) and os.path.getmtime(compiled) < newest:
            return True
    return False


def _compiled(source: str) -> str:
    return source.removesuffix(_SOURCE) + _COMPILED


def choose() -> None:
    """Called once, before any of them is imported."""
    choice = os.environ.get("OTTLA_KERNEL", "")
    if choice == "python" or not are_usable():
        if choice == "compiled":
            raise ImportError(
                "OTTLA_KERNEL=compiled, but not all modules are compiled: install the package anew"
            )
        sys.meta_path.insert(0, _SourceFinder(sources()))


def are_compiled() -> bool:
    return not any(isinstance(finder, _SourceFinder) for finder in sys.meta_path)
