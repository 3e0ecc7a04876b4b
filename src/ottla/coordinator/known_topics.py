"""What consumer groups have to know of topics, and the hash that tells whether any of it has changed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from ottla.coordinator.xxh3 import xxh3_64
from ottla.model.topics import TopicId
from ottla.model.values import NamedTuple

_HASH_VERSION = b"\0"
_INT = struct.Struct("<i")
_LONG = struct.Struct("<q")


class KnownTopic(NamedTuple):
    id: TopicId
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()  # of the replicas of each partition; empty where none has a rack


class Topics(Protocol):
    """The topics of the cluster."""

    @property
    def version(self) -> int:
        """Another one when topics, their partition counts or the racks of replicas have changed."""
        ...

    def find(self, name: str) -> KnownTopic | None: ...

    def name(self, topic_id: TopicId) -> str | None: ...


def existing(topics: Topics, names: Iterable[str]) -> dict[str, KnownTopic]:
    found = ((name, topics.find(name)) for name in sorted(set(names)))
    return {name: topic for name, topic in found if topic is not None}


def metadata_hash(topics: Mapping[str, KnownTopic]) -> int:
    """As Kafka computes it since 4.1 (KIP-1101): over the hashes of the topics, by name; zero for none."""
    if not topics:
        return 0
    return _signed(xxh3_64(b"".join(_LONG.pack(_topic_hash(name, topics[name])) for name in sorted(topics))))


@lru_cache(maxsize=10_000)
def _topic_hash(name: str, topic: KnownTopic) -> int:
    """Numbers in little endian, texts in UTF-16 with their length behind them."""
    parts = [_HASH_VERSION, topic.id[7::-1], topic.id[:7:-1], _text(name), _INT.pack(topic.partitions)]
    for partition in range(topic.partitions):
        parts.append(_INT.pack(partition))
        racks: Sequence[str] = topic.racks[partition] if topic.racks else ()
        for rack in sorted(racks, key=_units):
            parts += (_INT.pack(len(_units(rack)) // 2), _text(rack))
    return _signed(xxh3_64(b"".join(parts)))


def _text(value: str) -> bytes:
    units = value.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _units(value: str) -> bytes:
    """In the order in which Java sorts texts."""
    return value.encode("utf-16-be", "surrogatepass")


def _signed(hashed: int) -> int:
    return hashed - 2**64 if hashed >= 2**63 else hashed
