"""Which partitions a query reads right now, and under which topic ids."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ottla.client.errors import UnknownPartition
from ottla.model.topics import NO_TOPIC_ID, TopicPartition, topic_id_text
from ottla.spark.errors import InvalidOption
from ottla.spark.options import Subscription
from ottla.spark.places import Log


@dataclass(frozen=True)
class Subscribed:
    partitions: tuple[TopicPartition, ...]
    topic_ids: dict[str, str]  # by name, as text; a broker before 2.8 has none


def subscribed(log: Log, subscription: Subscription) -> Subscribed:
    if subscription.pattern is not None:
        pattern = re.compile(subscription.pattern)
        topics = tuple(each for each in log.topics() if pattern.fullmatch(each.name))
    else:
        topics = log.topics(subscription.topics if subscription.assigned is None else subscription.assigned)
    partitions = []
    for topic in topics:
        wanted = None if subscription.assigned is None else subscription.assigned[topic.name]
        for index in wanted if wanted is not None else range(len(topic.partitions)):
            if index >= len(topic.partitions):
                raise UnknownPartition(topic.name, index, len(topic.partitions))
            partitions.append(TopicPartition(topic.name, index))
    ids = {topic.name: topic_id_text(topic.id) for topic in topics if topic.id != NO_TOPIC_ID}
    return Subscribed(tuple(partitions), ids)


def some_subscribed(log: Log, subscription: Subscription) -> Subscribed:
    """The same, where there must be something to read."""
    found = subscribed(log, subscription)
    if not found.partitions:
        raise InvalidOption(
            f"{subscription.text()} matches no topic: check the pattern (internal topics do not count)"
        )
    return found
