"""DescribeProducers 0: what partitions remember of their producers, open transactions above all (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_SEQUENCE
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DescribeProducersRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeProducersRequest], services: Services) -> Steps:
    topics = []
    for topic in exchange.request.topics:
        partitions = []
        for index in topic.partition_indexes:
            yield None
            try:
                partitions.append(
                    PartitionResponse(
                        index, active_producers=_producers(exchange, services, topic.name, index)
                    )
                )
            except Refused as refusal:
                partitions.append(PartitionResponse(index, refusal.code, refusal.text))
        topics.append(TopicResponse(topic.name, partitions))
    return DescribeProducersResponse(topics=topics)


def _producers(
    exchange: Exchange[DescribeProducersRequest], services: Services, topic: str, index: int
) -> list[ProducerState]:
    if not exchange.may(topic):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = services.partitions.named(topic, index)
    if partition is None:
        raise services.partitions.missing(topic, index)
    if partition.unavailable is not None:
        raise partition.unavailable
    return [
        ProducerState(
            producer_id,
            entry.epoch,
            entry.batches[-1].last_sequence if entry.batches else NO_SEQUENCE,
            entry.last_timestamp,
            entry.coordinator_epoch,
            -1 if entry.txn_first_offset is None else entry.txn_first_offset,
        )
        for producer_id, entry in partition.log.producers.entries().items()
    ]
