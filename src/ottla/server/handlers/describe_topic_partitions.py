"""DescribeTopicPartitions 0: topics page by page (KIP-966), for clusters whose Metadata would be too large.

Topics come in order of name; `response_partition_limit` and `max.request.partition.size.limit` bound a page,
which has at least one partition, and the cursor says where the next one starts. An empty list of topics means
all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.controller.cluster import TopicImage
from ottla.model.errors import ErrorCode
from ottla.model.topics import INTERNAL_TOPICS, topic_name_problem
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from ottla.security.authorizer import ResourceType
from ottla.server.exchange import Exchange
from ottla.server.leadership import leadership
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DescribeTopicPartitionsRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeTopicPartitionsRequest], services: Services) -> Steps:
    request = exchange.request
    partitions_max = services.broker_config.integer("max.request.partition.size.limit")
    left = max(1, min(request.response_partition_limit, partitions_max))
    start = request.cursor
    if start is not None and start.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, topic.name)
                for topic in request.topics
            ]
        )
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in _names(exchange, services, start):
        yield None
        if left == 0:
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, 0))
        topic = services.controller.image.topics.get(name)
        if topic is None or not exchange.may(name):
            topics.append(_missing(exchange, name))
            continue
        first = start.partition_index if start is not None and start.topic_name == name else 0
        last = min(len(topic.partitions), first + left)
        topics.append(_topic(exchange, services, topic, range(first, last)))
        left -= max(0, last - first)
        if last < len(topic.partitions):
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor(name, last))
    return DescribeTopicPartitionsResponse(topics=topics)


def _names(
    exchange: Exchange[DescribeTopicPartitionsRequest], services: Services, start: Cursor | None
) -> Iterator[str]:
    asked = {topic.name for topic in exchange.request.topics}
    if not asked:
        asked = {name for name in services.controller.image.topics if exchange.may(name)}
    return (name for name in sorted(asked) if start is None or name >= start.topic_name)


def _missing(
    exchange: Exchange[DescribeTopicPartitionsRequest], name: str
) -> DescribeTopicPartitionsResponseTopic:
    if not exchange.may(name):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif topic_name_problem(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    else:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeTopicPartitionsResponseTopic(error_code=error, name=name)


def _topic(
    exchange: Exchange[DescribeTopicPartitionsRequest], services: Services, topic: TopicImage, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(services, topic, index) for index in indexes],
        topic_authorized_operations=services.operations_allowed(
            exchange.connection, ResourceType.TOPIC, topic.name
        ),
    )


def _partition(services: Services, topic: TopicImage, index: int) -> DescribeTopicPartitionsResponsePartition:
    partition = topic.partitions[index]
    error, leader, offline = leadership(services, topic, index, partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=error,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=(),  # null makes the Java AdminClient stumble
        last_known_elr=(),
        offline_replicas=offline,
    )
