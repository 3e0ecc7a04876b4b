"""Python source under construction: the lines of a function, its constants, and the field each line serves.

The last is what makes errors exact at no cost: a failing line number names the field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ottla.model.values import NamedTuple


class Run(NamedTuple):
    """Fixed-size values that stand together on the wire, and are packed or unpacked in one call."""

    letters: str = ""
    places: tuple[str, ...] = ()  # what is packed, or where it is unpacked to; pad bytes have none
    fields: tuple[str, ...] = ()  # for the message of an error

    def plus(self, letters: str, places: tuple[str, ...], field: str) -> Run:
        return Run(self.letters + letters, self.places + places, (*self.fields, field))


class Source:
    """The lines of one function; blocks indent, `serving` notes the field that lines are for."""

    def __init__(self, head: str, constants: dict[str, Any]) -> None:
        self.field_by_line: dict[int, str] = {}
        self._constants = constants
        self._lines = [head]
        self._depth = 1
        self._field: list[str] = []
        self._names = 0
        self._structs: dict[tuple[str, str], str] = {}

    @property
    def field(self) -> str:
        """The path of the field that lines are for."""
        return ".".join(self._field)

    def line(self, text: str, fields: Sequence[str] = ()) -> None:
        """Add a line for the current field, or for a run of several."""
        first, last = (fields[0], fields[-1]) if fields else (self.field, self.field)
        self._lines.append(" " * self._depth + text)
        self.field_by_line[len(self._lines)] = first if first == last else f"{first} to {last}"

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def serving(self, field: str) -> Iterator[None]:
        self._field.append(field)
        yield
        self._field.pop()

    def name(self, stem: str) -> str:
        """A new variable."""
        self._names += 1
        return f"{stem}_{self._names}"

    def constant(self, stem: str, value: Any) -> str:
        """The name under which the function sees `value`."""
        name = self.name(stem)
        self._constants[name] = value
        return name

    def struct_method(self, letters: str, method: str) -> str:
        """The name of a method of the big-endian struct of `letters`."""
        if (letters, method) not in self._structs:
            value = getattr(struct.Struct(">" + letters), method)
            self._structs[letters, method] = self.constant(method, value)
        return self._structs[letters, method]

    def literal(self, value: Any) -> str:
        """An expression for a default value."""
        if value is None or isinstance(value, (bool, int, str)) or value == ():
            return repr(value)
        return self.constant("default", value)

    def text(self) -> str:
        return "\n".join(self._lines)

    def compile(self, file_name: str, function: str, **constants: Any) -> Any:
        """The function of that name, which the lines define."""
        namespace = self._constants | constants
        exec(compile(self.text(), file_name, "exec"), namespace)
        return namespace[function]
