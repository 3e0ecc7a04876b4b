"""Clients of any Kafka broker: admin, producer, consumer. Talks over the wire only; knows no server of ours.

The names below are loaded when they are asked for, so that a command which lists topics does not pay for
producers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin import Admin as Admin
    from ottla.client.admin_values import GroupMetadata as GroupMetadata
    from ottla.client.admin_values import NewTopic as NewTopic
    from ottla.client.admin_values import OpenTransaction as OpenTransaction
    from ottla.client.consumer import Consumer as Consumer
    from ottla.client.errors import ClientError as ClientError
    from ottla.client.errors import ProducerFenced as ProducerFenced
    from ottla.client.errors import TransactionFailed as TransactionFailed
    from ottla.client.fetched import ConsumedRecord as ConsumedRecord
    from ottla.client.group import RebalanceListener as RebalanceListener
    from ottla.client.producer import Producer as Producer
    from ottla.client.reading import read as read
    from ottla.client.typed.topic import Topic as Topic
    from ottla.client.worker_pool import WorkerPool as WorkerPool
    from ottla.model.topics import TopicPartition as TopicPartition

_HOMES = {
    "Admin": "ottla.client.admin",
    "ClientError": "ottla.client.errors",
    "ConsumedRecord": "ottla.client.fetched",
    "Consumer": "ottla.client.consumer",
    "GroupMetadata": "ottla.client.admin_values",
    "NewTopic": "ottla.client.admin_values",
    "OpenTransaction": "ottla.client.admin_values",
    "Producer": "ottla.client.producer",
    "ProducerFenced": "ottla.client.errors",
    "RebalanceListener": "ottla.client.group",
    "read": "ottla.client.reading",
    "Topic": "ottla.client.typed.topic",
    "TopicPartition": "ottla.model.topics",
    "TransactionFailed": "ottla.client.errors",
    "WorkerPool": "ottla.client.worker_pool",
}

__all__ = [
    "Admin",
    "ClientError",
    "ConsumedRecord",
    "Consumer",
    "GroupMetadata",
    "NewTopic",
    "OpenTransaction",
    "Producer",
    "ProducerFenced",
    "RebalanceListener",
    "Topic",
    "TopicPartition",
    "TransactionFailed",
    "WorkerPool",
    "read",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
