"""DeleteRecords 0-2: moves the log start up; the answer is the new low watermark.

-1 trims up to the high watermark. Nothing above the high watermark can be trimmed. Compacted topics that are
not also under `delete` are refused (POLICY_VIOLATION), as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.fields import Message
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps
from ottla.server.visibility import answer_when_visible

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DeleteRecordsRequest], services: Services) -> Message | None:
    asked = [
        services.partitions.named(topic.name, partition.partition_index)
        for topic in exchange.request.topics
        for partition in topic.partitions
    ]
    found = [partition for partition in asked if partition is not None]
    return answer_when_visible(
        exchange, services, found, lambda: services.long_requests.begin(exchange, _answer(exchange, services))
    )


def _answer(exchange: Exchange[DeleteRecordsRequest], services: Services) -> Steps:
    topics = []
    for topic in exchange.request.topics:
        results = []
        for asked in topic.partitions:
            yield None
            try:
                low_watermark = _trim(exchange, services, topic.name, asked)
                results.append(DeleteRecordsPartitionResult(asked.partition_index, low_watermark))
            except Refused as refusal:
                results.append(DeleteRecordsPartitionResult(asked.partition_index, -1, refusal.code))
        topics.append(DeleteRecordsTopicResult(topic.name, results))
    return DeleteRecordsResponse(topics=topics)


def _trim(
    exchange: Exchange[DeleteRecordsRequest], services: Services, topic: str, asked: DeleteRecordsPartition
) -> int:
    if not exchange.may(topic):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = services.partitions.named(topic, asked.partition_index)
    if partition is None:
        raise services.partitions.missing(topic, asked.partition_index)
    if partition.config.cleanup_compact and not partition.config.cleanup_delete:
        raise Refused(ErrorCode.POLICY_VIOLATION, f"{topic} is compacted only; its records cannot be trimmed")
    return partition.delete_records(asked.offset)
