"""A topic's name together with the codecs of its keys and values."""

from __future__ import annotations

from typing import Any, Self

from ottla.client.errors import InvalidSetting
from ottla.client.serializers import Bytes, Long, String

_PLAIN = {str: String, int: Long, bytes: Bytes}


class Topic(str):
    """`key` and `value`: str, int (eight bytes, as Java's Long), bytes, or an object that serializes."""

    key: Any
    value: Any

    def __new__(cls, name: str, *, key: Any = bytes, value: Any = bytes) -> Self:
        topic = super().__new__(cls, name)
        topic.key = _codec(key, "key")
        topic.value = _codec(value, "value")
        for codec, is_key in ((topic.key, True), (topic.value, False)):
            configure = getattr(codec, "configure", None)
            if configure is not None:
                configure({}, is_key)
        return topic


def _codec(given: Any, what: str) -> Any:
    if given in _PLAIN:
        return _PLAIN[given]()
    if hasattr(given, "serialize") and hasattr(given, "deserialize"):
        return given
    shown = getattr(given, "__name__", repr(given))
    raise InvalidSetting(
        f"{shown} does not say how a {what} becomes bytes",
        f"give str, int, bytes, json({shown}), avro(...), or an object with serialize and deserialize",
    )
