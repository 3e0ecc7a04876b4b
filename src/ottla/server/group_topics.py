"""Topics as groups know them, and as requests about groups name them: by name, or from a version on by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.controller.cluster import TopicImage
from ottla.coordinator.known_topics import KnownTopic
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def topic_name(
    exchange: Exchange[Any], services: Services, operation: Operation, name: str, topic_id: TopicId
) -> str:
    """The name of a topic that exists and that the peer may use so. Refused otherwise."""
    image = services.controller.image
    if topic_id != NO_TOPIC_ID or not name:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        name = topic.name
    if not services.may(exchange.connection, operation, ResourceType.TOPIC, name):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if name not in image.topics:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return name


class ClusterTopics:
    """The cluster's topics for consumer groups (`coordinator.known_topics.Topics`)."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def version(self) -> int:
        return self._services.groups.topics_version

    def find(self, name: str) -> KnownTopic | None:
        topic = self._services.controller.image.topics.get(name)
        if topic is None:
            return None
        return KnownTopic(topic.id, len(topic.partitions), self._racks(topic))

    def _racks(self, topic: TopicImage) -> tuple[tuple[str, ...], ...]:
        brokers = self._services.controller.image.brokers
        racks = {broker.id: broker.rack for broker in brokers.values() if broker.rack is not None}
        if not racks:
            return ()
        return tuple(
            tuple(racks[each] for each in partition.replicas if each in racks)
            for partition in topic.partitions
        )

    def name(self, topic_id: TopicId) -> str | None:
        topic = self._services.controller.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name
