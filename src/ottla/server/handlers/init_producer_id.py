"""InitProducerId 0-5: a producer id for an idempotent producer.

- Without a transactional id every request gets a new id with epoch 0; ids are reserved durably in blocks.
- From 3 on a producer may name its id and epoch to have the epoch raised (KIP-360). That is for transactional
  producers; an idempotent one that names its id gets a new id, which fences as well.
- Transactions are not offered yet: a transactional id is refused as FindCoordinator refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.security.authorizer import CLUSTER_NAME
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[InitProducerIdRequest], services: Services) -> InitProducerIdResponse | None:
    request = exchange.request
    if not exchange.may(CLUSTER_NAME):
        return InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if request.transactional_id is not None:
        return InitProducerIdResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST)

    def taken(producer_id: int | Refused) -> None:
        if exchange.abandoned:
            return
        if isinstance(producer_id, Refused):
            exchange.answer(InitProducerIdResponse(error_code=producer_id.code))
        else:
            exchange.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    services.producer_ids.take(taken)
    return None
