"""Bytes for people's eyes: text where they are text, escapes where they are not."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

RecordDecoder = Callable[[bytes | None, bytes | None], tuple[str | None, str | None]]
"""From a record's key and value to text; ValueError: they are none of its kind, and are shown as bytes."""

RecordDecoders = Mapping[str, RecordDecoder]
"""By topic."""


def readable(data: bytes | None) -> str | None:
    """Text as it is, with control characters escaped; other bytes as \\xNN between what is ASCII."""
    if data is None:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in data)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def exact_fields(name: str, data: bytes | None) -> dict[str, str | None]:
    """For programs: the readable form, and base64 beside it when the bytes cannot be had back from that."""
    text = readable(data)
    fields = {name: text}
    if data is not None and (text is None or text.encode("utf-8") != data):
        fields[f"{name}_base64"] = base64.b64encode(data).decode("ascii")
    return fields
