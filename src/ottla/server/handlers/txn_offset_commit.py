"""TxnOffsetCommit 0-5: offsets of a group that count when the transaction commits.

- 3 and later tell who in the group commits, which is checked (KIP-447).
- From 5 on (KIP-890) the partition that holds the offsets is added to the transaction here; before, it must
  have been added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordinator.group_machine import GroupMachine
from ottla.coordinator.offset_commits import Commit, PartitionCommit
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import PartOf, Work
from ottla.server.request_parts import parts_of
from ottla.server.state_partition import Producer

if TYPE_CHECKING:
    from ottla.server.services import Services

_ADDED_HERE_SINCE = 5
_ABORTABLE_SINCE = 4


def handle(exchange: Exchange[TxnOffsetCommitRequest], services: Services) -> TxnOffsetCommitResponse | None:
    request = exchange.request
    if not services.may(
        exchange.connection, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        return _response(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not exchange.may(request.group_id):
        return _response(request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    commit = _Commit(exchange, services)
    try:
        place = services.groups.topic.find(request.group_id).partition.log.topic_partition
        identity = (request.transactional_id, request.producer_id, request.producer_epoch)
        if exchange.version >= _ADDED_HERE_SINCE:
            services.transactions.add(*identity, [place], commit.allowed)
        else:
            if services.transactions.verifies:
                services.transactions.verify(*identity, place)
            commit.allowed(None)
    except Refused as refusal:
        commit.allowed(refusal)
    return None


class _Commit:
    def __init__(self, exchange: Exchange[TxnOffsetCommitRequest], services: Services) -> None:
        self._exchange = exchange
        self._services = services
        self._codes: dict[tuple[str, int], ErrorCode] = {}  # of partitions that cannot be committed
        self._left = 0  # parts that are not written yet
        self._code = ErrorCode.NONE  # of the first part that could not be

    def allowed(self, refusal: Refused | None) -> None:
        """The group's offsets are part of the transaction, or not."""
        if self._exchange.abandoned:
            return
        if refusal is not None:
            self._answer(self._translated(refusal.code))
            return
        parts = parts_of(
            self._exchange.request.topics,
            lambda topic, partitions: TxnOffsetCommitRequestTopic(topic.name, partitions),
        )
        self._left = len(parts)
        self._services.long_requests.begin(PartOf(self._exchange), self._write(parts))

    def _write(self, parts: list[list[TxnOffsetCommitRequestTopic]]) -> Work:
        for topics in parts:
            try:
                self._write_part(topics)
            except Refused as refusal:
                self._written(refusal)
            yield None

    def _write_part(self, topics: list[TxnOffsetCommitRequestTopic]) -> None:
        request = self._exchange.request
        partition = self._services.groups.topic.find(request.group_id)
        commits = self._commits(topics, partition.machine)
        if not commits:
            self._written(None)
            return
        commit = Commit(
            self._exchange.version,
            request.group_id,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
            -1,
            commits,
        )
        records = partition.machine.commit(commit, self._services.groups.now, in_transaction=True)
        partition.write(records, self._written, Producer(request.producer_id, request.producer_epoch))
        self._services.groups.set_timer(partition, request.group_id)

    def _commits(
        self, topics: list[TxnOffsetCommitRequestTopic], machine: GroupMachine
    ) -> list[PartitionCommit]:
        commits = []
        for topic in topics:
            for each in topic.partitions:
                code = self._problem(topic.name, each.partition_index)
                if code is ErrorCode.NONE and machine.is_metadata_too_large(each.committed_metadata):
                    code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if code is not ErrorCode.NONE:
                    self._codes[topic.name, each.partition_index] = code
                    continue
                commits.append(
                    PartitionCommit(
                        topic.name,
                        each.partition_index,
                        each.committed_offset,
                        each.committed_leader_epoch,
                        each.committed_metadata,
                    )
                )
        return commits

    def _problem(self, topic: str, partition: int) -> ErrorCode:
        services = self._services
        if not services.may(self._exchange.connection, Operation.READ, ResourceType.TOPIC, topic):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        image = services.controller.image.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _translated(self, code: ErrorCode) -> ErrorCode:
        """As far as clients of this version know the codes of a transaction's coordinator."""
        if code is ErrorCode.TRANSACTION_ABORTABLE and self._exchange.version < _ABORTABLE_SINCE:
            return ErrorCode.INVALID_TXN_STATE
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return code

    def _written(self, refusal: Refused | None) -> None:
        """One of the parts; whatever became of the others, a producer that hears of an error has to abort."""
        self._left -= 1
        if refusal is not None:
            self._code = self._code or refusal.code
        if not self._left and not self._exchange.abandoned:
            self._answer(self._code)

    def _answer(self, code: ErrorCode) -> None:
        self._exchange.answer(_response(self._exchange.request, code, self._codes))


def _response(
    request: TxnOffsetCommitRequest, code: ErrorCode, others: dict[tuple[str, int], ErrorCode] | None = None
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, (others or {}).get((topic.name, each.partition_index), code)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
