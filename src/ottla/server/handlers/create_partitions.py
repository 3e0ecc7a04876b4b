"""CreatePartitions 0-3: more partitions for topics; there are never fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.controller.topics import PartitionsSpec, TopicResult
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from ottla.server.change_deadlines import in_time
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[CreatePartitionsRequest], services: Services) -> None:
    request = exchange.request
    refused: dict[str | None, TopicResult] = {}
    specs = []
    for topic in request.topics:
        if exchange.may(topic.name):
            specs.append(_spec(topic))
        else:
            refusal = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refused[topic.name] = TopicResult.refused(topic.name, refusal)

    def grown(results: Sequence[TopicResult]) -> None:
        if exchange.abandoned:
            return
        by_name = refused | {result.name: result for result in results}
        told = [
            CreatePartitionsTopicResult(each.name or "", each.code, each.text) for each in by_name.values()
        ]
        exchange.answer(CreatePartitionsResponse(results=told))

    names = [spec.name for spec in specs]
    services.controller.create_partitions(
        specs,
        validate_only=request.validate_only,
        done=in_time(services, request.timeout_ms, names, grown),
    )


def _spec(topic: CreatePartitionsTopic) -> PartitionsSpec:
    assignments = None
    if topic.assignments is not None:
        assignments = [assignment.broker_ids for assignment in topic.assignments]
    return PartitionsSpec(topic.name, topic.count, assignments)
