"""On which line of a TOML file a key stands. The standard reader does not tell, and errors should.

Looks at table headers, keys and inline tables that begin a line, as people write them; what it does not find
gets the line of the table that it belongs to.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?\Z")
_KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+)")
_DELIMITERS = ('"""', "'''")

Path = tuple[str, ...]


class Places:
    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._first: dict[Path, int] = {}  # of tables that have no header of their own, as [a] before [a.b]
        table: Path = ()
        key: Path = ()
        items = 0  # tables of the list that stands behind the last key
        inside: str | None = None  # the delimiter of the long text that a line belongs to
        for number, line in enumerate(text.splitlines(), 1):
            if inside is None:
                if header := _HEADER.match(line):
                    table = _parts(header[1])
                    self._lines.setdefault(table, number)
                    self._first.setdefault(table[:1], number)
                elif found := _KEY.match(line):
                    key, items = (*table, *_parts(found[1])), 0
                    self._lines.setdefault(key, number)
                elif line.lstrip().startswith("{"):
                    self._lines.setdefault((*key, str(items)), number)
                    items += 1
            for delimiter in _DELIMITERS:
                if inside in (None, delimiter) and line.count(delimiter) % 2:
                    inside = delimiter if inside is None else None

    def line_of(self, path: Path) -> int:
        """The line of this key, or of the nearest thing around it; 0 when nothing is known."""
        while path:
            line = self._lines.get(path) or self._first.get(path)
            if line is not None:
                return line
            path = path[:-1]
        return 0


def _parts(dotted: str) -> Path:
    return tuple(quoted or single or bare for quoted, single, bare in _PART.findall(dotted))
