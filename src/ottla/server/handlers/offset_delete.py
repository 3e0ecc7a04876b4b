"""OffsetDelete 0: forgets a group's offsets for partitions of topics that none of its members reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import NO_TOPIC_ID
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ottla.security.authorizer import Operation
from ottla.server.exchange import Exchange
from ottla.server.group_topics import topic_name

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[OffsetDeleteRequest], services: Services) -> OffsetDeleteResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    codes: dict[tuple[str, int], ErrorCode] = {}  # what is known of each partition asked for
    places = []
    for topic in request.topics:
        try:
            topic_name(exchange, services, Operation.READ, topic.name, NO_TOPIC_ID)
            places += [(topic.name, each.partition_index) for each in topic.partitions]
        except Refused as refusal:
            codes.update({(topic.name, each.partition_index): refusal.code for each in topic.partitions})
    try:
        partition = services.groups.topic.find_writable(request.group_id)
        records, deleted = partition.machine.delete_offsets(request.group_id, places)
    except Refused as refusal:
        return OffsetDeleteResponse(error_code=refusal.code)
    codes.update(zip(places, deleted, strict=True))

    def written(refusal: Refused | None) -> None:
        if not exchange.abandoned:
            failed = None if refusal is None else OffsetDeleteResponse(error_code=refusal.code)
            exchange.answer(failed or _response(request, codes))

    if not records:
        return _response(request, codes)
    services.groups.write_tombstones(partition, records, written)
    return None


def _response(request: OffsetDeleteRequest, codes: dict[tuple[str, int], ErrorCode]) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                topic.name,
                [
                    OffsetDeleteResponsePartition(
                        each.partition_index, codes[topic.name, each.partition_index]
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
