"""OffsetForLeaderEpoch 2-4: where a leader epoch ends in our log (KIP-101, KIP-320).

The answer is the largest epoch we have that is not above the one asked for, and the offset after its last
record; -1 and -1 when we know none. Consumers detect with it that a log was cut under them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[OffsetForLeaderEpochRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[OffsetForLeaderEpochRequest], services: Services) -> Steps:
    topics = []
    for topic in exchange.request.topics:
        answers = []
        for asked in topic.partitions:
            yield None
            try:
                answers.append(_find(exchange, services, topic.topic, asked))
            except Refused as refusal:
                answers.append(EpochEndOffset(refusal.code, asked.partition))
        topics.append(OffsetForLeaderTopicResult(topic.topic, answers))
    return OffsetForLeaderEpochResponse(topics=topics)


def _find(
    exchange: Exchange[OffsetForLeaderEpochRequest],
    services: Services,
    topic: str,
    asked: OffsetForLeaderPartition,
) -> EpochEndOffset:
    if not exchange.may(topic):
        raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = services.partitions.named(topic, asked.partition)
    if partition is None:
        raise services.partitions.missing(topic, asked.partition)
    partition.check_epoch(asked.current_leader_epoch)
    epoch, end_offset = partition.log.epoch_end_offset(asked.leader_epoch)
    if asked.leader_epoch == partition.leader_epoch:
        epoch, end_offset = partition.leader_epoch, partition.log_end_offset
    return EpochEndOffset(ErrorCode.NONE, asked.partition, epoch, end_offset)
