"""DescribeTransactions 0: how transactional ids stand (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DescribeTransactionsRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeTransactionsRequest], services: Services) -> Steps:
    states = []
    for transactional_id in exchange.request.transactional_ids:
        yield None
        try:
            states.append(_describe(exchange, services, transactional_id))
        except Refused as refusal:
            states.append(TransactionState(refusal.code, transactional_id))
    return DescribeTransactionsResponse(transaction_states=states)


def _describe(
    exchange: Exchange[DescribeTransactionsRequest], services: Services, transactional_id: str
) -> TransactionState:
    if not exchange.may(transactional_id):
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        raise Refused(ErrorCode.INVALID_REQUEST)
    machine = services.transactions.topic.find(transactional_id).machine
    known = machine.transactions.get(transactional_id)
    if known is None:
        raise Refused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(known.partitions):
        if services.may(exchange.connection, Operation.DESCRIBE, ResourceType.TOPIC, topic):
            topics.setdefault(topic, []).append(partition)
    return TransactionState(
        ErrorCode.NONE,
        transactional_id,
        known.state.kafka_name,
        known.timeout_ms,
        known.started_ms,
        known.producer_id,
        known.producer_epoch,
        [TopicData(topic, partitions) for topic, partitions in topics.items()],
    )
