"""Which tables a SQL text reads, as far as its words tell: the names behind FROM, JOIN and their commas.

Names of CTEs, and words like the one in EXTRACT(day FROM at), are among them; whoever asks keeps those it
knows. Spark itself decides later whether every name exists.
"""

from __future__ import annotations

import re

_NOISE = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_ALIAS_TOKENS = 2  # AS and a name
_TOKEN = re.compile(r"`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*|\S")
_NAME = re.compile(r"`[^`]+`|[A-Za-z_][A-Za-z0-9_]*")


def tables_read(sql: str) -> tuple[str, ...]:
    tokens = _TOKEN.findall(_NOISE.sub(" ", sql))
    names: dict[str, None] = {}
    expected = False  # the next token is a table
    listing = 0  # tokens since the last table of a FROM list; a comma may follow its alias
    for token in tokens:
        word = token.lower()
        if expected and _NAME.fullmatch(token):
            names[word.strip("`")] = None
            expected, listing = False, 1
        elif word in ("from", "join"):
            expected, listing = True, 0
        elif word == "," and listing:
            expected = True
        else:
            expected = False
            listing = listing + 1 if 0 < listing <= _ALIAS_TOKENS else 0
    return tuple(names)
