"""EndTxn 0-5: commit or abort.

- The answer leaves when the markers are where the records are, so that the next transaction can begin; should
  that take long, when the decision is durable.
- From 5 on (KIP-890) every transaction has its own epoch, and the answer holds the next one. A repeated
  request is known by its epoch and gets the same answer.
- Before 2 a fenced producer is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.transaction import Transaction
from ottla.coordinator.transaction_machine import EPOCH_PER_TRANSACTION
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.server.exchange import Exchange
from ottla.server.fencing import fenced_code

if TYPE_CHECKING:
    from ottla.server.services import Services

_FENCED_SINCE = 2
_OWN_EPOCH_SINCE = 5


def handle(exchange: Exchange[EndTxnRequest], services: Services) -> EndTxnResponse | None:
    request = exchange.request
    if not exchange.may(request.transactional_id):
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not request.transactional_id:
        return EndTxnResponse(error_code=ErrorCode.INVALID_REQUEST)

    def answer(result: Transaction | Refused) -> None:
        if exchange.abandoned:
            return
        if isinstance(result, Refused):
            code = fenced_code(result.code, exchange.version, _FENCED_SINCE)
            exchange.answer(EndTxnResponse(error_code=code))
        else:
            exchange.answer(
                EndTxnResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)
            )

    services.transactions.end(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_PER_TRANSACTION if exchange.version >= _OWN_EPOCH_SINCE else 0,
        answer,
    )
    return None
