"""Topics as requests about groups name them: by name, or from a version on by id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
