"""Where records go that name no partition. Pure but for the dice.

A user's own is an object with `partition(topic, key, key_bytes, value, value_bytes, cluster)`; it may have
`configure(configs)` and `close()`. Most built-in ones choose from the key's bytes alone.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from ottla.client.cluster_view import ClusterView, Topic
from ottla.records.kernel_choice import record_kernel

_POSITIVE = 0x7FFF_FFFF


class Partitioner(Protocol):
    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: ClusterView,
    ) -> int: ...


class OrderedQueue:
    """Records of one order go to one partition, whatever their keys: `order_of(topic, key, value)` names it.

    A number is taken modulo the partitions, as RocketMQ's selectors do; a text or bytes by murmur2, as a key.
    """

    def __init__(self, order_of: Callable[[str, Any, Any], int | str | bytes]) -> None:
        self._order_of = order_of

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: ClusterView,
    ) -> int:
        count = len(cluster.topics[topic].partitions)
        order = self._order_of(topic, key, value)
        if isinstance(order, int):
            return order % count
        return partition_of_key(order.encode() if isinstance(order, str) else order, count)


def partition_of_key(key: bytes, partition_count: int) -> int:
    """As the Java client places it, and librdkafka's murmur2 and murmur2_random."""
    hashed: int = record_kernel.murmur2(key)
    return (hashed & _POSITIVE) % partition_count


class Choice(ABC):
    """A built-in strategy."""

    is_sticky = False  # whether keyless records of a batch share a partition
    uses_keys = True

    @abstractmethod
    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int: ...

    def batch_ended(self, topic: str) -> None:  # noqa: B027  # most have no use for it
        """A batch of the topic is full or on its way."""


class Sticky(Choice):
    """One partition for a whole batch, then another: full batches instead of many small ones (KIP-480)."""

    is_sticky = True
    uses_keys = False

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()
        self._current: dict[str, int] = {}

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        current = self._current.get(topic.name)
        if current is None or current >= len(topic.partitions):
            current = self._current[topic.name] = _available(topic, self._chance)
        return current

    def batch_ended(self, topic: str) -> None:
        self._current.pop(topic, None)


class KeyElseSticky(Sticky):
    """The default: by the key, and without one sticky."""

    uses_keys = True

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        if key is not None:
            return partition_of_key(key, len(topic.partitions))
        return super().choose(key, topic, now_ms)


class KeyElseRandom(Choice):
    """By the key, and without one any partition for each record (librdkafka's murmur2_random)."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        if key is not None:
            return partition_of_key(key, len(topic.partitions))
        return _available(topic, self._chance)


class Random(Choice):
    """Any partition, whatever the key."""

    def __init__(self, chance: random.Random | None = None) -> None:
        self._chance = chance or random.Random()

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        return _available(topic, self._chance)


class HeldRandom(Choice):
    """Any partition, kept for `hold_ms`: few connections for producers with little to say."""

    def __init__(self, hold_ms: int, chance: random.Random | None = None) -> None:
        self._hold_ms = hold_ms
        self._chance = chance or random.Random()
        self._held: dict[str, tuple[int, int]] = {}  # partition, until when

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        partition, until_ms = self._held.get(topic.name, (0, now_ms))
        if now_ms >= until_ms or partition >= len(topic.partitions):
            partition = _available(topic, self._chance)
            self._held[topic.name] = (partition, now_ms + self._hold_ms)
        return partition


class RoundRobin(Choice):
    """Each record to the next partition, whatever its key."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def choose(self, key: bytes | None, topic: Topic, now_ms: int) -> int:
        number = self._next.get(topic.name, 0)
        self._next[topic.name] = number + 1
        return number % len(topic.partitions)


def built_in(hold_ms: int) -> dict[str, Callable[[], Choice]]:
    """By the names that `partitioner.class` has."""
    return {
        "default": KeyElseSticky,
        "murmur2": KeyElseRandom,
        "murmur2_random": KeyElseRandom,  # librdkafka's name
        "sticky": Sticky,
        "round_robin": RoundRobin,
        "RoundRobinPartitioner": RoundRobin,  # Java's name
        "random": Random,
        "held_random": lambda: HeldRandom(hold_ms),
    }


def _available(topic: Topic, chance: random.Random) -> int:
    """Any partition that has a leader; any at all while none has."""
    led = [partition.index for partition in topic.partitions if partition.leader is not None]
    return chance.choice(led) if led else chance.randrange(len(topic.partitions))
