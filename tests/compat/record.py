"""What a client is asked to write, what a client reports to have read, and how the two are told apart.

`differences` names case, partition, offset and field, so that a failing matrix cell says what is wrong
without a debugger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

CREATE_TIME = "create"
LOG_APPEND_TIME = "append"

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record to write; `case` is its name in reports."""

    case: str
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = ()
    # None leaves the choice to the client (its clock).
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Delivered:
    """One record as a consumer sees it. `Client.view` takes away what a client cannot show."""

    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_type: str | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a producer was told about its record; None where the client or acks=0 keeps it from knowing."""

    offset: int | None = None
    timestamp_ms: int | None = None


def _brief(thing: object) -> str:
    if isinstance(thing, bytes) and len(thing) > 48:
        digest = hashlib.sha256(thing).hexdigest()[:12]
        return f"<{len(thing)} bytes, sha256 {digest}…, {thing[:16]!r}…{thing[-8:]!r}>"
    text = repr(thing)
    return text if len(text) <= 160 else f"{text[:150]}… ({len(text)} characters)"


def _field_differences(label: str, wanted: Delivered, seen: Delivered) -> Iterator[str]:
    for field in fields(Delivered):
        left, right = getattr(wanted, field.name), getattr(seen, field.name)
        if left != right:
            yield f"{label}: {field.name} should be {_brief(left)} but was {_brief(right)}"


def differences(
    wanted: Mapping[int, Sequence[Delivered]],
    seen: Mapping[int, Sequence[Delivered]],
    labels: Mapping[tuple[int, int], str],
    lines_max: int = 25,
) -> list[str]:
    """Every field that differs, as readable lines; empty when all is equal.

    `labels` names what was written at (partition, offset).
    """
    lines: list[str] = []
    for partition in sorted(set(wanted) | set(seen)):
        expected, actual = wanted.get(partition, ()), seen.get(partition, ())
        if len(expected) != len(actual):
            lines.append(f"partition {partition}: {len(expected)} records written, {len(actual)} read")
        for left, right in zip(expected, actual, strict=False):
            label = (
                f"partition {partition} offset {left.offset} ({labels.get((partition, left.offset), '?')})"
            )
            lines.extend(_field_differences(label, left, right))
    if len(lines) > lines_max:
        lines[lines_max:] = [f"… and {len(lines) - lines_max} more"]
    return lines
