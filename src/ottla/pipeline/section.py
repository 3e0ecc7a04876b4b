"""One table of a definition, read key by key: what is missing, mistyped or unknown becomes a problem.

Problems are collected, not raised, so that a person sees all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any

from ottla.pipeline.problems import Problem
from ottla.pipeline.toml_places import Path, Places

_KINDS = {str: "a text", int: "a whole number", bool: "true or false", list: "a list", dict: "a table"}


class Section:
    def __init__(
        self, values: Mapping[str, Any], path: Path, file: str, places: Places, problems: list[Problem]
    ) -> None:
        self.values = values
        self.path = path
        self.file = file
        self.problems = problems
        self._places = places
        self._known: set[str] = set()

    @property
    def line(self) -> int:
        return self._places.line_of(self.path)

    def line_of(self, name: str) -> int:
        return self._places.line_of((*self.path, name))

    def __contains__(self, name: str) -> bool:
        self._known.add(name)
        return name in self.values

    def problem(self, name: str, text: str, cure: str = "") -> None:
        self.problems.append(Problem(self.file, self.line_of(name), text, cure))

    def text(
        self, name: str, default: str = "", *, required: bool = False, choices: Sequence[str] = ()
    ) -> str:
        value: str = self._typed(name, str, default, required)
        if choices and self.values.get(name) == value and value not in choices:
            near = get_close_matches(value, choices, n=1)
            cure = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(choices)}"
            self.problem(name, f"{name} = {value!r} is not known", cure)
            return default
        if self.values.get(name) == value and not value.strip():
            self.problem(name, f"{name} is empty", "write something, or leave the line out")
        return value

    def matching(
        self, name: str, pattern: str, what: str, default: str = "", *, required: bool = False
    ) -> str:
        value = self.text(name, default, required=required)
        if value and not re.fullmatch(pattern, value):
            self.problem(name, f"{name} = {value!r} is no {what}")
        return value

    def integer(self, name: str, default: int | None = None, *, least: int = 1) -> int | None:
        value: int | None = self._typed(name, int, default, required=False)
        if value is not None and value < least:
            self.problem(name, f"{name} = {value} is too small", f"at least {least}")
        return value

    def texts(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        """A list of texts, or one text alone."""
        self._known.add(name)
        value = self.values.get(name)
        if isinstance(value, str) and value:
            return (value,)
        if value is not None and not isinstance(value, list):
            cure = f'as {name} = "one" or {name} = ["one", "two"]'
            self.problem(name, f"{name} must be a text or a list of texts, not {value!r}", cure)
            return ()
        listed = self._typed(name, list, [], required)
        if not all(isinstance(each, str) and each for each in listed):
            self.problem(name, f"{name} must hold texts only", f'as {name} = ["one", "two"]')
            return ()
        if required and name in self.values and not listed:
            self.problem(name, f"{name} is empty", "name at least one")
        return tuple(listed)

    def existing(self, name: str, folder: FilePath, *, required: bool = False) -> FilePath:
        """A file of the project."""
        path = folder / self.text(name, required=required)
        if self.values.get(name) and not path.exists():
            self.problem(name, f"{path} is not there", near_file(path))
        return path

    def settings(self, name: str) -> dict[str, str]:
        """A table of settings; values become texts, as Spark and clients take them."""
        table = self._typed(name, dict, {}, required=False)
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in table.items()
        }

    def section(self, name: str, cure: str = "") -> Section | None:
        """A table within this one; None when it is not there, or none."""
        if name not in self:
            return None
        value = self.values[name]
        if not isinstance(value, dict):
            self.problem(name, f"{name} must be a table, not {value!r}", cure)
            return None
        return self._inner(value, name)

    def sections(self, name: str) -> Iterator[tuple[str, Section]]:
        """The tables below `name`, each with its own name."""
        for inner, values in self._typed(name, dict, {}, required=False).items():
            if isinstance(values, dict):
                yield inner, self._inner(values, name, inner)
            else:
                self.problem(name, f"{name}.{inner} must be a table", f"write [{name}.{inner}]")

    def listed_sections(self, name: str) -> list[Section]:
        """The tables of a list."""
        listed = self._typed(name, list, [], required=False)
        if not all(isinstance(each, dict) for each in listed):
            self.problem(name, f"{name} must be a list of tables", f"as {name} = [{{ … }}, {{ … }}]")
            return []
        return [self._inner(each, name, str(number)) for number, each in enumerate(listed)]

    def only_one_of(self, kinds: Sequence[str], otherwise: str) -> str | None:
        """The key that says what this table is; None, and a problem, when there is none or more than one."""
        given = [kind for kind in kinds if kind in self]
        if len(given) == 1:
            return given[0]
        said = f"says {' and '.join(given)}" if given else otherwise
        cure = f"write one of {', '.join(kinds)}"
        self.problem(given[1] if given else "", f"{' '.join(self.path)} {said}", cure)
        return None

    def finish(self) -> None:
        """Whatever nobody asked for is a mistake of the writer."""
        for name in self.values:
            if name not in self._known:
                near = get_close_matches(name, self._known, n=1)
                cure = f"did you mean {near[0]}?" if near else f"known here: {', '.join(sorted(self._known))}"
                self.problem(name, f"{name} means nothing in {self._shown_path()}", cure)

    def _inner(self, values: Mapping[str, Any], *names: str) -> Section:
        return Section(values, (*self.path, *names), self.file, self._places, self.problems)

    def _typed(self, name: str, kind: type, default: Any, required: bool) -> Any:
        self._known.add(name)
        if name not in self.values:
            if required:
                self.problem(name, f"{self._shown_path()} has no {name}", f"add {name} = …")
            return default
        value = self.values[name]
        if type(value) is not kind:
            self.problem(name, f"{name} must be {_KINDS[kind]}, not {value!r}")
            return default
        return value

    def _shown_path(self) -> str:
        named = [each for each in self.path if not each.isdigit()]
        return f"[{'.'.join(named)}]" if named else "the file"


def near_file(path: FilePath) -> str:
    """What a name of a file may have meant."""
    there = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, there, n=1)
    return f"did you mean {near[0]}?" if near else ""
