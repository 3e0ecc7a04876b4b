"""What commands print: rows as an aligned table for people, or as JSON, JSON lines or CSV for programs.

Colour only on terminals, and never with NO_COLOR (https://no-color.org).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TextIO

Cell = str | int | float | bool | None | Sequence[object] | Mapping[str, object]
Row = Mapping[str, Cell]

_COLUMN_GAP = "  "
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@cache
def colourful(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colourful(stream or sys.stdout) else text


def print_rows(rows: Iterable[Row], form: str, columns: Sequence[str] = ()) -> None:
    """`columns` name what a table and CSV show, in order; without rows they are all that is known."""
    if form == "jsonl":
        print_json_lines(rows)
        return
    everything = list(rows)
    columns = columns or list(dict.fromkeys(name for row in everything for name in row))
    if form == "json":
        import json

        print(json.dumps(everything, indent=2, ensure_ascii=False))
    elif form == "csv":
        _print_csv(everything, columns)
    else:
        print_table(everything, columns)


def print_plan(rows: Sequence[Row], form: str) -> None:
    """What is about to be changed, for people; programs are told afterwards."""
    if form == "table":
        print_table(rows, list(rows[0]) if rows else [])


def print_done(rows: Sequence[Row], form: str, sentence: str, *, done: bool = True) -> None:
    """What was changed, or only would be (`done` is False): a sentence for people, the rows for programs."""
    if form == "table":
        print(sentence if done else f"{sentence} (not done)")
    else:
        print_rows([{**row, "done": done} for row in rows], form)


def print_facts(facts: Row, form: str) -> None:
    """One thing: a table has a line for each fact, JSON an object."""
    if form == "table":
        width = max(map(len, facts), default=0)
        for name, value in facts.items():
            print(f"{styled(name.replace('_', ' ').ljust(width), 'dim')}{_COLUMN_GAP}{shown(value)}".rstrip())
    elif form == "json":
        import json

        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        print_rows([facts], form)


def print_json_lines(rows: Iterable[Row]) -> None:
    import json

    for row in rows:
        print(json.dumps(row, ensure_ascii=False))


def print_table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Numbers to the right, the rest to the left; the last column is not padded."""
    if not columns:
        return
    cells = [[shown(row.get(column)) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[index]) for line in cells)) if cells else len(column)
        for index, column in enumerate(columns)
    ]
    numeric = [
        all(isinstance(row.get(column), int | float | None) for row in rows) and bool(rows)
        for column in columns
    ]

    def line(texts: Sequence[str]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        )
        return _COLUMN_GAP.join(padded).rstrip()

    print(styled(line([column.replace("_", " ").upper() for column in columns]), "dim"))
    for texts in cells:
        print(line(texts))


def shown(value: Cell) -> str:
    """A value for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={item}" for key, item in value.items()) or "-"
    return ", ".join(map(str, value)) or "-"


def _print_csv(rows: Sequence[Row], columns: Sequence[str]) -> None:
    import csv
    import json

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(
            json.dumps(cell, ensure_ascii=False)
            if isinstance(cell := row.get(column), dict | list | tuple | bool)
            else cell
            for column in columns
        )
