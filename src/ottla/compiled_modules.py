"""How the modules of this package are found, and in which form they run: compiled, or as they are written.

A module with a `.pxd` of its name beside it is compiled at install time under its own name (setup.py); the
`.pxd` says which of its names have C types, the code is the same. Compiled modules know each other's layout,
so it is all of them or none: none without a compiler, with OTTLA_KERNEL=python, or in a checkout where a
source is newer than what was compiled of it.

Each directory is read once, and bytecode with four system calls. Python's own search asks about the directory
for every module, tries six names for each, and needs nine calls for its bytecode; a start has hundreds of
modules, and that is half of what finding one takes.
"""

from __future__ import annotations

import marshal
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import CodeType

_PACKAGE = os.path.dirname(__file__)  # pathlib would take a good part of the start of a command
_DECLARATION, _SOURCE, _COMPILED = ".pxd", ".py", EXTENSION_SUFFIXES[0]
_PACKAGE_SOURCE = "__init__.py"
_BYTECODE_BEGINNING = MAGIC_NUMBER + bytes(4)  # of what is valid while its source has a time and size
_BYTECODE_BYTES_MAX = 64 * 1024  # none here is near it, and a larger buffer is new memory for each
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


_names: dict[str, frozenset[str]] = {}  # in directories of the package, as they were when first asked for


class _Loader(SourceFileLoader):
    """Leaves it to Python's own whenever bytecode is not exactly what it writes for this source."""

    def __init__(self, name: str, path: str, bytecode: str) -> None:
        super().__init__(name, path)
        self._bytecode = bytecode

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            file = os.open(self._bytecode, os.O_RDONLY | os.O_CLOEXEC)
            try:
                content = os.read(file, _BYTECODE_BYTES_MAX)
            finally:
                os.close(file)
            source = os.stat(self.path)
        except OSError:
            return super().get_code(fullname)
        times = int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF
        header = _BYTECODE_BEGINNING + b"".join(each.to_bytes(4, "little") for each in times)
        if len(content) == _BYTECODE_BYTES_MAX or not content.startswith(header):
            return super().get_code(fullname)
        code: CodeType = marshal.loads(memoryview(content)[len(header) :])
        _fix_co_filename(code, self.path)  # it may have moved
        return code


class _Finder:
    """Comes before Python's own search, which still finds what this one does not know."""

    def __init__(self, *, prefers_sources: bool) -> None:
        self.prefers_sources = prefers_sources

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        if path is None or not name.startswith("ottla.") or len(path) != 1:
            return None
        names, module = _names_in(path[0]), name.rpartition(".")[2]
        place = path[0] + os.sep + module
        if module + _COMPILED in names and not (self.prefers_sources and module + _SOURCE in names):
            return _spec(name, ExtensionFileLoader(name, place + _COMPILED))
        if module + _SOURCE in names:
            return _source_spec(name, place + _SOURCE)
        if module in names and _PACKAGE_SOURCE in _names_in(place):
            spec = _source_spec(name, place + os.sep + _PACKAGE_SOURCE)
            spec.submodule_search_locations = [place]
            return spec
        return None


def _source_spec(name: str, source: str) -> ModuleSpec:
    try:
        bytecode = cache_from_source(source)
    except NotImplementedError:  # a Python that keeps none
        return _spec(name, SourceFileLoader(name, source))
    spec = _spec(name, _Loader(name, source, bytecode))
    spec.cached = bytecode
    return spec


def _spec(name: str, loader: ExtensionFileLoader | SourceFileLoader) -> ModuleSpec:
    spec = ModuleSpec(name, loader, origin=loader.path)
    spec.has_location = True
    return spec


def _names_in(directory: str) -> frozenset[str]:
    names = _names.get(directory)
    if names is None:
        try:
            names = frozenset(os.listdir(directory))
        except OSError:  # as within a zip archive
            names = frozenset()
        _names[directory] = names
    return names


def sources() -> dict[str, str]:
    """The files of modules that have a compiled form, by the modules' names."""
    found = {}
    for room in _ROOMS:
        directory = os.path.join(_PACKAGE, room)
        files = _names_in(directory)
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
    prefers_sources = choice == "python" or not are_usable()
    if prefers_sources and choice == "compiled":
        raise ImportError("OTTLA_KERNEL=compiled, but not all modules are compiled: install the package anew")
    sys.meta_path.insert(0, _Finder(prefers_sources=prefers_sources))


def are_compiled() -> bool:
    return not any(isinstance(finder, _Finder) and finder.prefers_sources for finder in sys.meta_path)
