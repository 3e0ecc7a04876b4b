"""Metadata 0-13: brokers, topics, partitions and their leaders, as seen from the listener that was asked.

- All topics: an empty list in version 0, null from 1 on; an empty list then means none.
- From 10 on topics carry ids, from 12 on they can be asked for by id.
- A topic that is missing is created when the client (4+) and `auto.create.topics.enable` allow it; the answer
  waits for that, so the client need not ask again.
- A partition whose files cannot be used has no leader: LEADER_NOT_AVAILABLE, this broker among the offline.
- Topics the peer may not describe are left out of a list of all, and refused by name otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ottla.controller.cluster import PartitionImage, TopicImage
from ottla.controller.topics import TopicResult, TopicSpec
from ottla.model.errors import ErrorCode
from ottla.model.limits import TOPICS_AUTO_CREATED_PER_REQUEST
from ottla.model.topics import INTERNAL_TOPICS, NO_TOPIC_ID, topic_name_problem
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.leadership import leadership
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

_NOT_ASKED = -(2**31)


def handle(exchange: Exchange[MetadataRequest], services: Services) -> None:
    missing = _creatable(exchange, services)
    if not missing:
        services.long_requests.begin(exchange, _answer(exchange, services, {}))
        return

    def created(results: Sequence[TopicResult]) -> None:
        if not exchange.abandoned:
            errors = {result.name: result.code for result in results if result.code != ErrorCode.NONE}
            services.long_requests.begin(exchange, _answer(exchange, services, errors))

    services.controller.create_topics(
        [TopicSpec(name) for name in missing], validate_only=False, done=created
    )


def _creatable(exchange: Exchange[MetadataRequest], services: Services) -> list[str]:
    """Names asked for that do not exist, could, and may be created by asking."""
    request = exchange.request
    if not request.topics or not services.broker_config.flag("auto.create.topics.enable"):
        return []
    if exchange.version >= 4 and not request.allow_auto_topic_creation:
        return []
    topics = services.controller.image.topics
    names = dict.fromkeys(
        topic.name for topic in request.topics if topic.name and topic.topic_id == NO_TOPIC_ID
    )
    creatable = (
        name
        for name in names
        if name not in topics
        and name not in INTERNAL_TOPICS  # their coordinators make them
        and topic_name_problem(name) is None
        and exchange.may(name)
        and services.may(exchange.connection, Operation.CREATE, ResourceType.TOPIC, name)
    )
    return list(islice(creatable, TOPICS_AUTO_CREATED_PER_REQUEST))


def _answer(
    exchange: Exchange[MetadataRequest], services: Services, errors: Mapping[str | None, ErrorCode]
) -> Steps:
    request = exchange.request
    image = services.controller.image
    asked = request.topics
    topics = []
    if asked is None or (exchange.version == 0 and not asked):
        for known in list(image.topics.values()):
            yield None
            if exchange.may(known.name):
                topics.append(_topic(exchange, services, known))
    else:
        once = {(topic.name, topic.topic_id): topic for topic in asked}  # as in Kafka, whatever is repeated
        for topic in once.values():
            yield None
            topics.append(_asked_topic(exchange, services, topic, errors))
    operations = _NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = services.operations_allowed(exchange.connection, ResourceType.CLUSTER, CLUSTER_NAME)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(*broker) for broker in services.brokers(exchange.connection.listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=operations if 8 <= exchange.version <= 10 else _NOT_ASKED,
    )


def _asked_topic(
    exchange: Exchange[MetadataRequest],
    services: Services,
    asked: MetadataRequestTopic,
    errors: Mapping[str | None, ErrorCode],
) -> MetadataResponseTopic:
    image = services.controller.image
    if asked.topic_id != NO_TOPIC_ID:
        if exchange.version < 12 or asked.name:
            return _missing(exchange, asked, ErrorCode.INVALID_REQUEST)
        found = image.topics_by_id.get(asked.topic_id)
        if found is None or not exchange.may(found.name):
            return _missing(exchange, asked, ErrorCode.UNKNOWN_TOPIC_ID)
        return _topic(exchange, services, found)
    name = asked.name
    if name is None:
        return _missing(exchange, asked, ErrorCode.INVALID_REQUEST)
    if topic_name_problem(name) is not None:
        return _missing(exchange, asked, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not exchange.may(name):
        return _missing(exchange, asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    found = image.topics.get(name)
    if found is None:
        return _missing(exchange, asked, errors.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return _topic(exchange, services, found)


def _missing(
    exchange: Exchange[MetadataRequest], asked: MetadataRequestTopic, error: ErrorCode
) -> MetadataResponseTopic:
    name = asked.name if asked.topic_id == NO_TOPIC_ID else None
    if name is None and exchange.version < 12:
        name = ""  # null has no place there
    return MetadataResponseTopic(
        error_code=error, name=name, topic_id=asked.topic_id, is_internal=name in INTERNAL_TOPICS
    )


def _topic(
    exchange: Exchange[MetadataRequest], services: Services, topic: TopicImage
) -> MetadataResponseTopic:
    operations = _NOT_ASKED
    if exchange.request.include_topic_authorized_operations:
        operations = services.operations_allowed(exchange.connection, ResourceType.TOPIC, topic.name)
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(services, topic, index, partition) for index, partition in enumerate(topic.partitions)
        ],
        topic_authorized_operations=operations,
    )


def _partition(
    services: Services, topic: TopicImage, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    error, leader, offline = leadership(services, topic, index, partition)
    return MetadataResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline,
    )
