"""Keys and values of fetched records as users want them, and the chain of interceptors that sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from ottla.client import plugins
from ottla.client.errors import DeserializationFailed
from ottla.client.fetched import ConsumedRecord
from ottla.client.interceptors import Interceptors
from ottla.client.serializers import DESERIALIZERS, Side
from ottla.model.topics import TopicPartition

PLUGGABLE = ("key.deserializer", "value.deserializer", "interceptor.classes")


@runtime_checkable
class Typed(Protocol):
    """A topic's name that knows what its records are (`typed.topic`)."""

    key: Any
    value: Any


class Decoding:
    def __init__(self, plugged: Mapping[str, object], configs: Mapping[str, object]) -> None:
        self.interceptors = Interceptors(
            plugins.resolve_all("interceptor.classes", plugged.get("interceptor.classes"), {}), configs
        )
        self._key = Side("key.deserializer", plugged.get("key.deserializer"), DESERIALIZERS, configs)
        self._value = Side("value.deserializer", plugged.get("value.deserializer"), DESERIALIZERS, configs)
        self._is_plain = self._key.plugin is None and self._value.plugin is None

    def know(self, topics: Iterable[str]) -> None:
        """Records of typed topics are decoded by their own codecs."""
        for topic in topics:
            if isinstance(topic, Typed):
                self._key.codecs[str(topic)] = topic.key
                self._value.codecs[str(topic)] = topic.value
                self._is_plain = False

    def decode(
        self, records: list[ConsumedRecord]
    ) -> tuple[list[ConsumedRecord], DeserializationFailed | None]:
        """As many as could be read, in order, and why the next one could not."""
        if self._is_plain:
            return records, None
        decoded: list[ConsumedRecord] = []
        key_side, value_side = self._key, self._value
        for record in records:
            try:
                key = key_side.deserialize(record.topic, record.key)
                value = value_side.deserialize(record.topic, record.value)
            except Exception as error:
                place = TopicPartition(record.topic, record.partition)
                text = f"{place} offset {record.offset} could not be deserialized: {error!r}"
                failure = DeserializationFailed(text, place, record.offset)
                failure.__cause__ = error
                return decoded, failure
            decoded.append(record._replace(key=key, value=value))
        return decoded, None

    def close(self) -> None:
        for each in (self._key, self._value, self.interceptors):
            each.close()
