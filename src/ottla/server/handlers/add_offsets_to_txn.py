"""AddOffsetsToTxn 0-4: the partition that holds a group's offsets becomes part of a transaction.

Before 2 a fenced producer is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.fencing import fenced_code

if TYPE_CHECKING:
    from ottla.server.services import Services

_FENCED_SINCE = 2


def handle(exchange: Exchange[AddOffsetsToTxnRequest], services: Services) -> AddOffsetsToTxnResponse | None:
    request = exchange.request
    if not exchange.may(request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not services.may(exchange.connection, Operation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)

    def answer(refusal: Refused | None) -> None:
        if exchange.abandoned:
            return
        code = ErrorCode.NONE if refusal is None else refusal.code
        code = fenced_code(code, exchange.version, _FENCED_SINCE)
        exchange.answer(AddOffsetsToTxnResponse(error_code=code))

    def there(refusal: Refused | None) -> None:
        if refusal is not None:
            answer(refusal)
            return
        place = services.groups.topic.place_of(request.group_id)
        services.transactions.add(
            request.transactional_id, request.producer_id, request.producer_epoch, [place], answer
        )

    services.groups.topic.ensure(there)
    return None
