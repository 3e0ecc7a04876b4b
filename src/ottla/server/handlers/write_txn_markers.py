"""WriteTxnMarkers 1-2: markers for a coordinator, or for an administrator who ends a hanging transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.transaction_markers import Ending, Results, write_markers

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[WriteTxnMarkersRequest], services: Services) -> WriteTxnMarkersResponse | None:
    markers = exchange.request.markers
    may = exchange.may(CLUSTER_NAME) or services.may(
        exchange.connection, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME
    )
    if not may or not markers:
        refused = [_result(marker, {}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for marker in markers]
        return WriteTxnMarkersResponse(refused)
    results: list[WritableTxnMarkerResult | None] = [None] * len(markers)

    def write(number: int, marker: WritableTxnMarker) -> None:
        def done(codes: Results) -> None:
            results[number] = _result(marker, codes)
            if None not in results and not exchange.abandoned:
                exchange.answer(WriteTxnMarkersResponse([each for each in results if each is not None]))

        ending = Ending(
            marker.producer_id, marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch
        )
        places = [
            TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes
        ]
        write_markers(services, ending, places, done)

    for number, marker in enumerate(markers):
        write(number, marker)
    return None


def _result(
    marker: WritableTxnMarker, codes: Results, otherwise: ErrorCode = ErrorCode.NONE
) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        marker.producer_id,
        [
            WritableTxnMarkerTopicResult(
                topic.name,
                [
                    WritableTxnMarkerPartitionResult(
                        index, codes.get(TopicPartition(topic.name, index), otherwise)
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
