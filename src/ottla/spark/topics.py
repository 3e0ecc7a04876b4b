"""Which partitions a query reads right now, and under which topic ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.cluster_view import Topic
from ottla.client.errors import UnknownPartition, UnknownTopic
from ottla.model.topics import NO_TOPIC_ID, TopicPartition, topic_id_text
from ottla.spark.errors import InvalidOption
from ottla.spark.options import Subscription
from ottla.spark.places import Log


@dataclass(frozen=True)
class Subscribed:
    partitions: tuple[TopicPartition, ...]
    topic_ids: dict[str, str]  # by name, as text; a broker before 2.8 has none


def subscribed(log: Log, subscription: Subscription) -> Subscribed:
    """Raises UnknownTopic and UnknownPartition for what was named and is not there."""
    if subscription.pattern is not None:
        topics = _matching(log, subscription.pattern)
    else:
        topics = log.topics(_names(subscription))
    for topic in topics:
        for index in _wanted(topic, subscription):
            if index >= len(topic.partitions):
                raise UnknownPartition(topic.name, index, len(topic.partitions))
    return _subscribed(topics, subscription)


def still_subscribed(log: Log, subscription: Subscription) -> Subscribed:
    """The same for a query that runs: what is not there any more is left out, for `loss` to judge."""
    try:
        return subscribed(log, subscription)
    except (UnknownTopic, UnknownPartition):
        names = set(_names(subscription))
        return _subscribed([topic for topic in log.topics() if topic.name in names], subscription)


def _subscribed(topics: Iterable[Topic], subscription: Subscription) -> Subscribed:
    partitions = [
        TopicPartition(topic.name, index)
        for topic in topics
        for index in _wanted(topic, subscription)
        if index < len(topic.partitions)
    ]
    ids = {topic.name: topic_id_text(topic.id) for topic in topics if topic.id != NO_TOPIC_ID}
    return Subscribed(tuple(partitions), ids)


def _names(subscription: Subscription) -> tuple[str, ...]:
    return subscription.topics if subscription.assigned is None else tuple(subscription.assigned)


def _matching(log: Log, pattern: str) -> tuple[Topic, ...]:
    compiled = re.compile(pattern)
    return tuple(each for each in log.topics() if compiled.fullmatch(each.name))


def _wanted(topic: Topic, subscription: Subscription) -> Iterable[int]:
    if subscription.assigned is None:
        return range(len(topic.partitions))
    return subscription.assigned[topic.name]


def some_subscribed(log: Log, subscription: Subscription) -> Subscribed:
    """The same, where there must be something to read."""
    found = subscribed(log, subscription)
    if not found.partitions:
        raise InvalidOption(
            f"{subscription.text()} matches no topic: check the pattern (internal topics do not count)"
        )
    return found
