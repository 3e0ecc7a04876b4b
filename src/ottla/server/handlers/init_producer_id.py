"""InitProducerId 0-6: a producer id and epoch.

- Without a transactional id every request gets a new id with epoch 0; ids are reserved durably in blocks. An
  idempotent producer that names its id to have its epoch raised gets a new one too, which fences as well.
- With one, the id's next epoch: whoever had it before is fenced, and its open transaction is aborted first.
  From 3 on a producer may name its id and epoch to have the epoch raised (KIP-360); one that is no longer the
  current one is told PRODUCER_FENCED from 4 on, INVALID_PRODUCER_EPOCH before.
- From 6 on a producer may take part in the two-phase commit of an outside coordinator (KIP-939), where the
  broker's setting and the authorizer allow it: its transactions never run out of time, and one that was left
  open can be kept for the new producer to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.transaction import ENDLESS_MS, Transaction
from ottla.model.errors import ErrorCode, Refused
from ottla.model.offsets import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.fencing import fenced_code

if TYPE_CHECKING:
    from ottla.server.services import Services

_FENCED_SINCE = 4


def handle(exchange: Exchange[InitProducerIdRequest], services: Services) -> InitProducerIdResponse | None:
    request = exchange.request
    transactional_id = request.transactional_id
    if transactional_id is None and not exchange.may(CLUSTER_NAME):
        return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refusal(ErrorCode.INVALID_REQUEST)
    if transactional_id is not None:
        return _begin(exchange, services, transactional_id)

    def taken(producer_id: int | Refused) -> None:
        if exchange.abandoned:
            return
        if isinstance(producer_id, Refused):
            exchange.answer(_refusal(producer_id.code))
        else:
            exchange.answer(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    services.producer_ids.take(taken)
    return None


def _begin(
    exchange: Exchange[InitProducerIdRequest], services: Services, transactional_id: str
) -> InitProducerIdResponse | None:
    request = exchange.request
    if not services.may(
        exchange.connection, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id
    ):
        return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return _refusal(ErrorCode.INVALID_REQUEST)
    timeout_ms = request.transaction_timeout_ms
    if request.enable_2pc:
        if not _may_prepare(exchange, services, transactional_id):
            return _refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        timeout_ms = ENDLESS_MS
    elif not 0 < timeout_ms <= services.transactions.timeout_ms_max:
        return _refusal(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    if request.keep_prepared_txn and not request.enable_2pc:
        return _refusal(ErrorCode.INVALID_REQUEST)
    expected = None
    if request.producer_id != NO_PRODUCER_ID:
        expected = (request.producer_id, request.producer_epoch)

    def answer(result: Transaction | Refused) -> None:
        if exchange.abandoned:
            return
        if isinstance(result, Refused):
            code = fenced_code(result.code, exchange.version, _FENCED_SINCE)
            exchange.answer(_refusal(code))
        else:
            exchange.answer(_begun(result))

    services.transactions.begin(
        transactional_id, timeout_ms, expected, answer, keep_prepared=request.keep_prepared_txn
    )
    return None


def _refusal(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_PRODUCER_EPOCH)


def _may_prepare(
    exchange: Exchange[InitProducerIdRequest], services: Services, transactional_id: str
) -> bool:
    may = Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, transactional_id
    is_enabled = services.broker_config.flag("transaction.two.phase.commit.enable")
    return is_enabled and services.may(exchange.connection, *may)


def _begun(transaction: Transaction) -> InitProducerIdResponse:
    producer_id, producer_epoch = transaction.owner
    if not transaction.is_prepared:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)
    return InitProducerIdResponse(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        ongoing_txn_producer_id=transaction.producer_id,
        ongoing_txn_producer_epoch=transaction.producer_epoch,
    )
