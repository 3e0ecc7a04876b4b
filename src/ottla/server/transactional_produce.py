"""Produce requests of transactions: a partition is part of its transaction, durably, before it is written to.

Clients since Produce 12 leave the adding to us (KIP-890): their first request to a partition waits for it,
and so do the requests behind it. Older clients have asked before, which is verified, unless the partition
holds records of the transaction already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import TopicPartition
from ottla.records.batch import HEADER_BYTES, BatchHeader, read_header
from ottla.replica.partition import Partition
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.connection import Connection
from ottla.server.exchange import Exchange
from ottla.server.produce_requests import ProduceWork

if TYPE_CHECKING:
    from ottla.server.services import Services

_ADDED_HERE_SINCE = 12
_ABORTABLE_SINCE = 11
_COORDINATOR_AWAY = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)

Exchanges = list[Exchange[ProduceWork]]
Additions = dict[tuple[str, int, int], set[TopicPartition]]
"""What is to become part of transactions, by transactional id, producer id and epoch."""


def hold_back(exchanges: Exchanges, services: Services, go_on: Callable[[Exchanges], None]) -> Exchanges:
    """Gives those that can be handled now; `go_on` gets the others when their transactions know of them."""
    held: dict[Connection, tuple[Exchanges, Additions]] = {}
    ready: Exchanges = []
    for exchange in exchanges:
        additions = _additions(exchange, services)
        if exchange.connection not in held and not additions:
            ready.append(exchange)
            continue
        behind, wanted = held.setdefault(exchange.connection, ([], {}))
        behind.append(exchange)
        for producer, places in additions.items():
            wanted.setdefault(producer, set()).update(places)
    for behind, wanted in held.values():
        for exchange in behind:
            exchange.blocks = True  # what arrives later waits, so that the order is kept
        _add(wanted, services, behind, go_on)
    return ready


def _add(
    additions: Additions, services: Services, behind: Exchanges, go_on: Callable[[Exchanges], None]
) -> None:
    left = len(additions)

    def added(refusal: Refused | None) -> None:
        nonlocal left
        left -= 1
        if not left:  # a refusal is met again when the batch is checked
            services.reactor.post(lambda: go_on([each for each in behind if not each.abandoned]))

    for producer, places in additions.items():
        services.transactions.add(*producer, places, added)


def _additions(exchange: Exchange[ProduceWork], services: Services) -> Additions:
    """Partitions that are to become part of the request's transaction."""
    request = exchange.request
    additions: Additions = {}
    if request.transactional_id is None or exchange.version < _ADDED_HERE_SINCE:
        return additions
    if not _may(exchange, services):
        return additions
    for topic in request.topics:
        for part in topic.parts:
            if exchange.version >= 13:
                partition = services.partitions.with_id(topic.topic_id, part.index)
            else:
                partition = services.partitions.named(topic.name, part.index)
            if partition is None or part.records is None or len(part.records) < HEADER_BYTES:
                continue
            header = read_header(part.records)
            if (
                header.is_transactional
                and exchange.may(partition.topic)
                and _is_missing(request.transactional_id, header, partition, services)
            ):
                producer = (request.transactional_id, header.producer_id, header.producer_epoch)
                additions.setdefault(producer, set()).add(partition.log.topic_partition)
    return additions


def _is_missing(transactional_id: str, header: BatchHeader, partition: Partition, services: Services) -> bool:
    if partition.log.producers.is_in_transaction(header.producer_id, header.producer_epoch):
        return False
    try:
        services.transactions.verify(
            transactional_id, header.producer_id, header.producer_epoch, partition.log.topic_partition
        )
    except Refused as refusal:
        return refusal.code is ErrorCode.TRANSACTION_ABORTABLE
    return False


def check_transactional(
    exchange: Exchange[ProduceWork], services: Services, partition: Partition, header: BatchHeader
) -> None:
    """Refused when the batch is not one of an open transaction that its partition is part of."""
    transactional_id = exchange.request.transactional_id
    if transactional_id is None or not _may(exchange, services):
        raise Refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if partition.log.producers.is_in_transaction(header.producer_id, header.producer_epoch):
        return
    if exchange.version < _ADDED_HERE_SINCE and not services.transactions.verifies:
        return
    try:
        services.transactions.verify(
            transactional_id, header.producer_id, header.producer_epoch, partition.log.topic_partition
        )
    except Refused as refusal:
        raise Refused(_as_producers_know(refusal.code, exchange.version), refusal.text) from None


def _as_producers_know(code: ErrorCode, version: int) -> ErrorCode:
    """What a producer of that version can make sense of."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _COORDINATOR_AWAY:
        return ErrorCode.NOT_ENOUGH_REPLICAS  # it tries again
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDED_HERE_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code


def _may(exchange: Exchange[ProduceWork], services: Services) -> bool:
    transactional_id = exchange.request.transactional_id
    assert transactional_id is not None
    return services.may(exchange.connection, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
