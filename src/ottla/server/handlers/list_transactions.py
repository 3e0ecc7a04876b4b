"""ListTransactions 0-1: the transactional ids that this broker coordinates (KIP-664, 1: KIP-994)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator import transaction
from ottla.coordinator.transaction import Transaction
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services

_STATES = {state.kafka_name for state in transaction.TransactionState}


def handle(exchange: Exchange[ListTransactionsRequest], services: Services) -> ListTransactionsResponse:
    request = exchange.request
    partitions = services.transactions.topic.partitions.values()
    if not all(partition.is_loaded for partition in partitions):
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    now_ms = services.clock.wall_ms()
    found = [
        TransactionState(transactional_id, known.producer_id, known.state.kafka_name)
        for partition in partitions
        for transactional_id, known in partition.machine.transactions.items()
        if _is_wanted(request, known, now_ms) and exchange.may(transactional_id)
    ]
    unknown = [state for state in request.state_filters if state not in _STATES]
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def _is_wanted(request: ListTransactionsRequest, known: Transaction, now_ms: int) -> bool:
    if request.state_filters and known.state.kafka_name not in request.state_filters:
        return False
    if request.producer_id_filters and known.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    return known.started_ms >= 0 and now_ms - known.started_ms > request.duration_filter
