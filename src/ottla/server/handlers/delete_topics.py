"""DeleteTopics 1-6: topics by name, from 6 on also by id. What waits on their partitions fails at once.

A topic that the peer may delete but not describe is not named to it, and an id that it may not describe is
unknown to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.controller.topics import TopicResult
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

Target = str | TopicId


def handle(exchange: Exchange[DeleteTopicsRequest], services: Services) -> None:
    refused: list[TopicResult] = []
    allowed: list[Target] = []
    for asked in _asked(exchange):
        target: Target = asked.name if asked.name is not None else asked.topic_id
        try:
            if (asked.name is None) == (asked.topic_id == NO_TOPIC_ID):
                raise Refused(ErrorCode.INVALID_REQUEST, "a topic is named either by its name or by its id")
            _check(exchange, services, target)
            allowed.append(target)
        except Refused as refusal:
            refused.append(TopicResult.refused(asked.name, refusal, asked.topic_id))

    def deleted(results: Sequence[TopicResult]) -> None:
        if not exchange.abandoned:
            services.long_requests.begin(exchange, _answer(exchange, (*results, *refused)))

    services.controller.delete_topics(allowed, done=deleted)


def _answer(exchange: Exchange[DeleteTopicsRequest], results: Sequence[TopicResult]) -> Steps:
    told = []
    for result in results:
        yield None
        told.append(_result(exchange, result))
    return DeleteTopicsResponse(responses=told)


def _asked(exchange: Exchange[DeleteTopicsRequest]) -> Sequence[DeleteTopicState]:
    if exchange.version >= 6:
        return exchange.request.topics
    return [DeleteTopicState(name) for name in exchange.request.topic_names]


def _check(exchange: Exchange[DeleteTopicsRequest], services: Services, target: Target) -> None:
    if isinstance(target, str):
        if not exchange.may(target):
            raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    else:
        topic = services.controller.image.topics_by_id.get(target)
        may_describe = topic is not None and services.may(
            exchange.connection, Operation.DESCRIBE, ResourceType.TOPIC, topic.name
        )
        if topic is None or not may_describe:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
        if not exchange.may(topic.name):
            raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _result(exchange: Exchange[DeleteTopicsRequest], result: TopicResult) -> DeletableTopicResult:
    name = result.name if exchange.version >= 6 else result.name or ""
    topic_id = result.topic_id if exchange.version >= 6 else NO_TOPIC_ID
    return DeletableTopicResult(name, topic_id, result.code, result.text)
