"""`json(Order)`: values of a dataclass, a pydantic model or a msgspec struct as JSON.

Pydantic and msgspec are the user's own: whoever gives one of their classes has them.
"""

from __future__ import annotations

import dataclasses
import json as standard
from typing import Any

from ottla.client.errors import InvalidSetting
from ottla.client.serializers import Json
from ottla.client.typed.fields import WrongField, built, plain


def json(kind: Any = None) -> Any:
    """A codec for `kind`; without one for whatever the json module knows."""
    if kind is None:
        return Json()
    if hasattr(kind, "model_validate_json"):
        return _Pydantic(kind)
    if hasattr(kind, "__struct_fields__"):
        return _Msgspec(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _Dataclass(kind)
    shown = getattr(kind, "__name__", repr(kind))
    raise InvalidSetting(
        f"json({shown}): {shown} is no dataclass, pydantic model or msgspec struct",
        "decorate it with @dataclass, or give json() for plain values",
    )


class _Typed:
    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def _check(self, data: Any) -> None:
        if not isinstance(data, self._kind):
            raise TypeError(f"expected {self._kind.__name__}, got {type(data).__name__}")


class _Dataclass(_Typed):
    def serialize(self, topic: str, data: Any) -> bytes | None:
        if data is None:
            return None
        self._check(data)
        return standard.dumps(plain(data), separators=(",", ":"), ensure_ascii=False).encode()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            value = standard.loads(data)
        except ValueError as error:
            raise WrongField("", f"no JSON: {error}") from None
        return built(self._kind, value)


class _Pydantic(_Typed):
    def serialize(self, topic: str, data: Any) -> bytes | None:
        if data is None:
            return None
        self._check(data)
        text: str = data.model_dump_json()
        return text.encode()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            return self._kind.model_validate_json(data)
        except ValueError as error:
            details = getattr(error, "errors", None)
            if details is None:
                raise
            first = details()[0]
            raise WrongField(_place(first["loc"]), first["msg"]) from error


class _Msgspec(_Typed):
    def __init__(self, kind: Any) -> None:
        import msgspec

        super().__init__(kind)
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(kind)
        self._problems = (msgspec.ValidationError, msgspec.DecodeError)

    def serialize(self, topic: str, data: Any) -> bytes | None:
        if data is None:
            return None
        self._check(data)
        encoded: bytes = self._encoder.encode(data)
        return encoded

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        if data is None:
            return None
        try:
            return self._decoder.decode(data)
        except self._problems as error:
            text, _, place = str(error).partition(" - at `$.")
            raise WrongField(place.rstrip("`"), text) from error


def _place(parts: tuple[str | int, ...]) -> str:
    place = ""
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place
