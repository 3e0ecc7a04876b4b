"""Keys and values as bytes and back: users' own, and those for texts, integers, bytes and JSON.

A serializer has `serialize(topic, data)`, a deserializer `deserialize(topic, data)`; both may have
`configure(configs, is_key)` and `close()`. None stays None: a value of None is a tombstone. Integers are as
Java's IntegerSerializer and LongSerializer write them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Protocol

from ottla.client import plugins
from ottla.client.errors import ClientError, SerializationFailed

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class Serializer(Protocol):
    def serialize(self, topic: str, data: Any) -> bytes | None: ...


class Deserializer(Protocol):
    def deserialize(self, topic: str, data: bytes | None) -> Any: ...


class String:
    """Texts, in UTF-8 unless key.serializer.encoding (…) says otherwise."""

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        side = "key" if is_key else "value"
        for name in (f"{side}.serializer.encoding", f"{side}.deserializer.encoding"):
            self._encoding = str(configs.get(name, self._encoding))

    def serialize(self, topic: str, data: str | None) -> bytes | None:
        return None if data is None else data.encode(self._encoding)

    def deserialize(self, topic: str, data: bytes | None) -> str | None:
        return None if data is None else data.decode(self._encoding)


class _Number:
    _layout: struct.Struct

    def serialize(self, topic: str, data: int | None) -> bytes | None:
        return None if data is None else self._layout.pack(data)

    def deserialize(self, topic: str, data: bytes | None) -> int | None:
        if data is None:
            return None
        if len(data) != self._layout.size:
            raise ValueError(f"{len(data)} bytes are no integer of {self._layout.size}")
        number: int = self._layout.unpack(data)[0]
        return number


class Integer(_Number):
    """Four bytes, signed."""

    _layout = _INT


class Long(_Number):
    """Eight bytes, signed."""

    _layout = _LONG


class Bytes:
    def serialize(self, topic: str, data: Any) -> bytes | None:
        return None if data is None else bytes(memoryview(data))

    def deserialize(self, topic: str, data: bytes | None) -> bytes | None:
        return data


class Json:
    """Whatever the json module takes; no spaces between."""

    def serialize(self, topic: str, data: Any) -> bytes | None:
        return None if data is None else json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode()

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        return None if data is None else json.loads(data)


_KINDS = {"string": String, "integer": Integer, "long": Long, "bytes": Bytes, "json": Json}
SERIALIZERS: plugins.Factories = _KINDS | {
    f"{name}Serializer": _KINDS[kind]
    for name, kind in (
        ("String", "string"),
        ("Integer", "integer"),
        ("Long", "long"),
        ("Bytes", "bytes"),
        ("ByteArray", "bytes"),
    )
}
DESERIALIZERS: plugins.Factories = {
    name.replace("Serializer", "Deserializer"): kind for name, kind in SERIALIZERS.items()
}


class Side:
    """The serializer or deserializer of keys or of values, if there is one."""

    def __init__(
        self, setting: str, given: object, built_in: plugins.Factories, configs: Mapping[str, object]
    ) -> None:
        self.is_key = setting.startswith("key.")
        self.plugin = None if given is None else plugins.resolve(setting, given, built_in)
        if self.plugin is not None:
            plugins.configure(self.plugin, configs, self.is_key)
        self.codecs: dict[str, Any] = {}  # of typed topics that are read; they come before the plugin
        self._setting = setting

    def serialize(self, topic: str, data: Any) -> bytes | None:
        codec = getattr(topic, self._what, self.plugin)  # a typed topic has its own
        if codec is None:
            return self._plain(data)
        try:
            made: bytes | None = codec.serialize(topic, data)
        except ClientError:
            raise
        except Exception as error:
            raise SerializationFailed(
                f"{self._what} for topic {topic!r} could not be serialized: {error!r}",
                f"check what {self._setting} takes",
            ) from error
        return made if made is None or type(made) is bytes else bytes(memoryview(made))

    def _plain(self, data: Any) -> bytes | None:
        if data is None:
            return None
        try:
            return bytes(memoryview(data))
        except TypeError:
            raise SerializationFailed(
                f"the {self._what} is {type(data).__name__}, not bytes",
                f'encode it, or set {self._setting} ("string", "json", …)',
            ) from None

    @property
    def _what(self) -> str:
        return "key" if self.is_key else "value"

    def deserialize(self, topic: str, data: bytes | None) -> Any:
        codec = self.codecs.get(topic, self.plugin)
        return data if codec is None else codec.deserialize(topic, data)

    def close(self) -> None:
        plugins.close(self.plugin)
