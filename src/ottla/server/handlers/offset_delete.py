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
from ottla.server.long_requests import PartOf, Work

if TYPE_CHECKING:
    from ottla.server.services import Services


_AT_ONCE = 300


def handle(exchange: Exchange[OffsetDeleteRequest], services: Services) -> OffsetDeleteResponse | None:
    request = exchange.request
    if not exchange.may(request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    services.long_requests.begin(PartOf(exchange), _delete(exchange, services))
    return None


def _delete(exchange: Exchange[OffsetDeleteRequest], services: Services) -> Work:
    """In parts; the answer follows when the last of them is durable."""
    request = exchange.request
    codes: dict[tuple[str, int], ErrorCode] = {}  # what is known of each partition asked for
    failures: list[Refused] = []

    def written(refusal: Refused | None) -> None:
        if refusal is not None:
            failures.append(refusal)

    def answer(refusal: Refused | None) -> None:
        written(refusal)
        if not exchange.abandoned:
            failed = OffsetDeleteResponse(error_code=failures[0].code) if failures else None
            exchange.answer(failed or _response(request, codes))

    places = _places(exchange, services, codes)
    try:
        for first in range(0, max(1, len(places)), _AT_ONCE):
            part = places[first : first + _AT_ONCE]
            partition = services.groups.find(request.group_id)
            partition.check_writable()
            records, deleted = partition.machine.delete_offsets(request.group_id, part)
            codes.update(zip(part, deleted, strict=True))
            services.groups.write_tombstones(partition, records, written)
            yield None
    except Refused as refusal:
        answer(refusal)
    else:
        partition.when_durable(answer)


def _places(
    exchange: Exchange[OffsetDeleteRequest], services: Services, codes: dict[tuple[str, int], ErrorCode]
) -> list[tuple[str, int]]:
    """Those that are there and that the peer may read; `codes` gets what is wrong with the others."""
    places = []
    for topic in exchange.request.topics:
        code, partition_count = ErrorCode.NONE, 0
        try:
            topic_name(exchange, services, Operation.READ, topic.name, NO_TOPIC_ID)
            partition_count = len(services.controller.image.topics[topic.name].partitions)
        except Refused as refusal:
            code = refusal.code
        for each in topic.partitions:
            place = (topic.name, each.partition_index)
            if code is ErrorCode.NONE and 0 <= each.partition_index < partition_count:
                places.append(place)
            else:
                codes[place] = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return places


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
