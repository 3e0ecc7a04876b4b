"""Dataclasses from plain values, as JSON and Avro give them, and back. Pure.

What does not fit is named by its place: `items[2].price: expected float, got str`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

_TEXTS: dict[type, Callable[[str], Any]] = {  # what JSON has no form for, as text
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    Decimal: Decimal,
    UUID: UUID,
}


class WrongField(ValueError):
    """A value does not fit its field."""

    def __init__(self, place: str, text: str) -> None:
        super().__init__(f"{place}: {text}" if place else text)
        self.place = place


def plain(value: Any) -> Any:
    """Dictionaries, lists and scalars of whatever dataclasses there are."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    return value


def built(kind: Any, value: Any, place: str = "") -> Any:
    """`value` as a `kind`. Raises WrongField."""
    if kind is Any:
        return value
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(kind), value, place)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return value if isinstance(value, kind) else _dataclass(kind, value, place)
    if origin in (list, tuple, set, frozenset, Sequence):
        return _many(kind, origin, value, place)
    if origin in (dict, Mapping):
        _need(value, dict, place)
        inner = get_args(kind)[1]
        return {key: built(inner, each, f"{place}[{key!r}]") for key, each in value.items()}
    return _scalar(kind, value, place)


def _dataclass(kind: type, value: Any, place: str) -> Any:
    _need(value, dict, place)
    hints = _hints(kind)
    arguments = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        inner = f"{place}.{field.name}" if place else field.name
        if field.name in value:
            arguments[field.name] = built(hints[field.name], value[field.name], inner)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise WrongField(inner, "is missing")
    return kind(**arguments)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _one_of(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    problem: WrongField | None = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return built(kind, value, place)
        except WrongField as error:
            problem = problem or error
    raise problem or WrongField(place, "fits nothing")


def _many(kind: Any, origin: Any, value: Any, place: str) -> Any:
    _need(value, list, place)
    inner = get_args(kind)
    if origin is tuple and inner[-1] is not Ellipsis:
        if len(inner) != len(value):
            raise WrongField(place, f"expected {len(inner)} values, got {len(value)}")
        return tuple(
            built(each, item, f"{place}[{number}]")
            for number, (each, item) in enumerate(zip(inner, value, strict=True))
        )
    made = [built(inner[0], item, f"{place}[{number}]") for number, item in enumerate(value)]
    return made if origin in (list, Sequence) else origin(made)


def _scalar(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(kind, type) or kind is object:
        return value
    try:
        if issubclass(kind, Enum):
            return kind(value)
        if kind in _TEXTS and isinstance(value, str):
            return _TEXTS[kind](value)
    except (ValueError, ArithmeticError):
        raise WrongField(place, f"{value!r} is no {kind.__name__}") from None
    if kind is float and type(value) is int:
        return float(value)
    _need(value, kind, place)
    return value


def _need(value: Any, kind: type, place: str) -> None:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float)):
        expected = {"dict": "an object", "list": "a list"}.get(kind.__name__, kind.__name__)
        raise WrongField(place, f"expected {expected}, got {type(value).__name__}")
