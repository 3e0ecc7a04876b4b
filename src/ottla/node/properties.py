"""Java's .properties format, as Kafka's users write it: text in, lines of name and value out.

In UTF-8, where Java reads Latin-1; the two differ only for letters that Java's users must escape anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ottla.model.configs import InvalidSetting
from ottla.model.values import NamedTuple

_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class Property(NamedTuple):
    name: str
    value: str
    line: int  # where it begins, counted from 1


def parse_properties(text: str) -> list[Property]:
    """Every property in order, a name that is there twice included. Raises InvalidSetting."""
    return [_parse_property(line, content) for line, content in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined; comments and blank lines left out."""
    natural = _LINE_END.split(text)
    position = 0
    while position < len(natural):
        first = position + 1
        content = natural[position].lstrip(_BLANK)
        position += 1
        if not content or content[0] in "#!":
            continue
        while _is_continued(content):
            content = content[:-1]
            if position == len(natural):
                break
            content += natural[position].lstrip(_BLANK)
            position += 1
        if content:
            yield first, content


def _is_continued(content: str) -> bool:
    """An odd number of backslashes at the end: the last one is not itself escaped."""
    return (len(content) - len(content.rstrip("\\"))) % 2 == 1


def _parse_property(line: int, content: str) -> Property:
    end = _name_end(content)
    rest = content[end:].lstrip(_BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANK)
    return Property(_unescape(content[:end], line), _unescape(rest, line), line)


def _name_end(content: str) -> int:
    """The first separator that no backslash hides."""
    position = 0
    while position < len(content):
        character = content[position]
        if character == "\\":
            position += 2
            continue
        if character in "=:" or character in _BLANK:
            return position
        position += 1
    return len(content)


def _unescape(text: str, line: int) -> str:
    if "\\" not in text:
        return text
    result = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\":
            result.append(character)
            continue
        escaped = text[position : position + 1]
        position += 1
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) != 4 or not _HEX_DIGITS.issuperset(digits):
                raise InvalidSetting(
                    f"line {line}: \\u{digits} is not valid, expected four hexadecimal digits"
                )
            result.append(chr(int(digits, 16)))
            position += 4
        else:
            result.append(_ESCAPES.get(escaped, escaped))
    # Letters beyond U+FFFF are written as two escapes, a surrogate pair; alone, a surrogate is no text.
    joined = "".join(result)
    try:
        return joined.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidSetting(f"line {line}: half of a surrogate pair stands alone") from None
