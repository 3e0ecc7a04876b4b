"""AddPartitionsToTxn 0-5: partitions become part of a transaction, durably, before they are written to.

- Up to 3 clients ask, for one transaction. If one of its partitions is not there or not allowed, none is
  added and the others get OPERATION_NOT_ATTEMPTED.
- From 4 on brokers ask, for many; with `verify_only` whether partitions belong to it (KIP-890).
- Before 2 a fenced producer is told INVALID_PRODUCER_EPOCH, which is what its client knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import INTERNAL_TOPICS, TopicPartition
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.fencing import fenced_code

if TYPE_CHECKING:
    from ottla.server.services import Services

_BY_BROKERS_SINCE = 4
_FENCED_SINCE = 2
_ABORTABLE_SINCE = 5

Codes = dict[TopicPartition, ErrorCode]


def handle(
    exchange: Exchange[AddPartitionsToTxnRequest], services: Services
) -> AddPartitionsToTxnResponse | None:
    request = exchange.request
    if exchange.version >= _BY_BROKERS_SINCE:
        if not services.may(
            exchange.connection, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return _Many(exchange, services).begin()
    transaction = AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def answer(codes: Codes) -> None:
        if not exchange.abandoned:
            results = _results(transaction.topics, codes)
            exchange.answer(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))

    if not exchange.may(transaction.transactional_id):
        answer(_all(transaction.topics, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    else:
        _add(exchange, services, transaction, answer)
    return None


class _Many:
    """The transactions of one request, each of which is decided on its own."""

    def __init__(self, exchange: Exchange[AddPartitionsToTxnRequest], services: Services) -> None:
        self._exchange = exchange
        self._services = services
        self._results: list[AddPartitionsToTxnResult | None] = [None] * len(exchange.request.transactions)

    def begin(self) -> AddPartitionsToTxnResponse | None:
        if not self._results:
            return AddPartitionsToTxnResponse()
        for number, transaction in enumerate(self._exchange.request.transactions):
            decide = _verify if transaction.verify_only else _add
            decide(self._exchange, self._services, transaction, self._answer_to(number, transaction))
        return None

    def _answer_to(self, number: int, transaction: AddPartitionsToTxnTransaction) -> Callable[[Codes], None]:
        def answer(codes: Codes) -> None:
            self._results[number] = AddPartitionsToTxnResult(
                transaction.transactional_id, _results(transaction.topics, codes)
            )
            if None not in self._results and not self._exchange.abandoned:
                results = [result for result in self._results if result is not None]
                self._exchange.answer(AddPartitionsToTxnResponse(results_by_transaction=results))

        return answer


def _add(
    exchange: Exchange[AddPartitionsToTxnRequest],
    services: Services,
    transaction: AddPartitionsToTxnTransaction,
    answer: Callable[[Codes], None],
) -> None:
    problems = {
        place: code
        for place in _places(transaction.topics)
        if (code := _problem(exchange, services, place)) is not ErrorCode.NONE
    }
    if problems:
        answer({**_all(transaction.topics, ErrorCode.OPERATION_NOT_ATTEMPTED), **problems})
        return

    def added(refusal: Refused | None) -> None:
        code = ErrorCode.NONE if refusal is None else refusal.code
        code = fenced_code(code, exchange.version, _FENCED_SINCE)
        answer(_all(transaction.topics, code))

    if not transaction.transactional_id:
        added(Refused(ErrorCode.INVALID_REQUEST))
        return
    services.transactions.add(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        _places(transaction.topics),
        added,
    )


def _problem(
    exchange: Exchange[AddPartitionsToTxnRequest], services: Services, place: TopicPartition
) -> ErrorCode:
    if not services.may(exchange.connection, Operation.WRITE, ResourceType.TOPIC, place.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = services.controller.image.topics.get(place.topic)
    if topic is None or not 0 <= place.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if place.topic in INTERNAL_TOPICS and exchange.version < _BY_BROKERS_SINCE:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _verify(
    exchange: Exchange[AddPartitionsToTxnRequest],
    services: Services,
    transaction: AddPartitionsToTxnTransaction,
    answer: Callable[[Codes], None],
) -> None:
    codes = {}
    for place in _places(transaction.topics):
        try:
            services.transactions.verify(
                transaction.transactional_id, transaction.producer_id, transaction.producer_epoch, place
            )
            codes[place] = ErrorCode.NONE
        except Refused as refusal:
            codes[place] = refusal.code
            if refusal.code is ErrorCode.TRANSACTION_ABORTABLE and exchange.version < _ABORTABLE_SINCE:
                codes[place] = ErrorCode.INVALID_TXN_STATE
    answer(codes)


def _places(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]


def _all(topics: Iterable[AddPartitionsToTxnTopic], code: ErrorCode) -> Codes:
    return dict.fromkeys(_places(topics), code)


def _results(topics: Sequence[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(partition, codes[TopicPartition(topic.name, partition)])
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]
