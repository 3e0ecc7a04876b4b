"""The requests of transactions, and what their answers mean. Pure; `transactions` says when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

from ottla.client.addresses import Address
from ottla.client.admin_values import CommittedOffset, GroupMetadata
from ottla.client.errors import BrokerError, broker_error, error_code
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
    Api,
)
from ottla.protocol.fields import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from ottla.client.transactions import Transactions

LEVEL_2 = 2  # of transaction.version: KIP-890 complete
FEATURE = "transaction.version"

PRODUCE_VERSION_BEFORE_LEVEL_2 = 11
END_VERSION_BEFORE_LEVEL_2 = 4
_OFFSET_VERSION_BEFORE_LEVEL_2 = 4
_ADD_PARTITIONS_VERSION_OF_CLIENTS = 3  # later ones are for brokers
_VERSION_END = 32_767
_KEY_TYPE_GROUP, _KEY_TYPE_TRANSACTION = 0, 1
_MANY_KEYS_SINCE = 4
_WHOLE_INT = 2**31 - 1


class Kind(Enum):
    FIND_COORDINATOR = auto()
    FIND_GROUP_COORDINATOR = auto()
    INIT = auto()
    ADD_PARTITIONS = auto()
    ADD_OFFSETS = auto()
    COMMIT_OFFSETS = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Request:
    kind: Kind
    api: Api
    message: Message | Callable[[int], Message]
    address: Address | None  # None: any broker
    version_max: int = _VERSION_END
    partitions: frozenset[TopicPartition] = frozenset()
    group_id: str = ""


Make = Callable[["Transactions"], Request]


class Verdict(Enum):
    DONE = auto()
    ASK_AGAIN = auto()
    FIND_AGAIN = auto()  # the coordinator has moved
    ABORT = auto()  # the transaction is lost, the producer is not
    FAIL = auto()  # the producer must not go on


_FIND_AGAIN = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_ABORT = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        # The member has lost its partitions: its offsets must not be committed, others may go on.
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    }
)


def judge(code: ErrorCode) -> Verdict:
    if code is ErrorCode.NONE:
        return Verdict.DONE
    if code in _FIND_AGAIN:
        return Verdict.FIND_AGAIN
    if code in _ABORT:
        return Verdict.ABORT
    return Verdict.ASK_AGAIN if code.retriable else Verdict.FAIL


# -- requests ----------------------------------------------------------------------------------------------


def find(key: str, kind: Kind) -> Request:
    key_type = _KEY_TYPE_TRANSACTION if kind is Kind.FIND_COORDINATOR else _KEY_TYPE_GROUP

    def message(version: int) -> FindCoordinatorRequest:
        if version < _MANY_KEYS_SINCE:
            return FindCoordinatorRequest(key=key, key_type=key_type)
        return FindCoordinatorRequest(coordinator_keys=(key,), key_type=key_type)

    return Request(kind, FIND_COORDINATOR, message, None)


def init(known: Transactions) -> Request:
    """The first identity, or the next epoch of the one that there is (KIP-360)."""
    message = InitProducerIdRequest(
        known.id,
        _WHOLE_INT if known.two_phase else known.timeout_ms,
        known.sequences.producer_id,
        known.sequences.epoch,
        enable_2pc=known.two_phase,
    )
    return Request(Kind.INIT, INIT_PRODUCER_ID, message, known.coordinator)


def add_partitions(known: Transactions, partitions: frozenset[TopicPartition]) -> Request:
    by_topic: dict[str, list[int]] = {}
    for target in sorted(partitions):
        by_topic.setdefault(target.topic, []).append(target.partition)
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=known.id,
        v3_and_below_producer_id=known.sequences.producer_id,
        v3_and_below_producer_epoch=known.sequences.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(topic, each) for topic, each in by_topic.items()],
    )
    return Request(
        Kind.ADD_PARTITIONS,
        ADD_PARTITIONS_TO_TXN,
        message,
        known.coordinator,
        _ADD_PARTITIONS_VERSION_OF_CLIENTS,
        partitions,
    )


def add_offsets(known: Transactions, group_id: str) -> Request:
    identity = known.sequences
    message = AddOffsetsToTxnRequest(known.id, identity.producer_id, identity.epoch, group_id)
    return Request(Kind.ADD_OFFSETS, ADD_OFFSETS_TO_TXN, message, known.coordinator, group_id=group_id)


def commit_offsets(
    known: Transactions, group: GroupMetadata, offsets: Mapping[TopicPartition, CommittedOffset]
) -> Request:
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for target, each in sorted(offsets.items()):
        epoch = -1 if each.leader_epoch is None else each.leader_epoch
        by_topic.setdefault(target.topic, []).append(
            TxnOffsetCommitRequestPartition(target.partition, each.offset, epoch, each.metadata)
        )
    message = TxnOffsetCommitRequest(
        known.id,
        group.group_id,
        known.sequences.producer_id,
        known.sequences.epoch,
        group.generation,
        group.member_id,
        group.instance_id,
        [TxnOffsetCommitRequestTopic(topic, each) for topic, each in by_topic.items()],
    )
    version_max = _VERSION_END if known.is_v2 else _OFFSET_VERSION_BEFORE_LEVEL_2
    return Request(Kind.COMMIT_OFFSETS, TXN_OFFSET_COMMIT, message, known.group_coordinator, version_max)


def end(known: Transactions, *, commit: bool) -> Request:
    identity = known.sequences
    message = EndTxnRequest(known.id, identity.producer_id, identity.epoch, commit)
    version_max = _VERSION_END if known.is_v2 else END_VERSION_BEFORE_LEVEL_2
    return Request(Kind.END, END_TXN, message, known.coordinator, version_max)


# -- answers -----------------------------------------------------------------------------------------------


def worst_code(kind: Kind, answer: Message) -> ErrorCode:
    """The error that decides: of several, the one that leaves the least."""
    if isinstance(answer, FindCoordinatorResponse):
        codes = [(answer.coordinators[0] if answer.coordinators else answer).error_code]
    elif isinstance(answer, AddPartitionsToTxnResponse):
        codes = [
            partition.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
        ]
    elif isinstance(answer, TxnOffsetCommitResponse):
        codes = [partition.error_code for topic in answer.topics for partition in topic.partitions]
    else:
        codes = [answer.error_code]  # type: ignore[attr-defined]  # every other answer has one
    known = [error_code(code) for code in codes]
    # Partitions are not attempted because of others, and those say what is wrong.
    telling = [code for code in known if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)]
    return max(telling or known, key=lambda code: judge(code).value, default=ErrorCode.NONE)


def problem(transactional_id: str, kind: Kind, code: ErrorCode, answer: Message) -> BrokerError:
    message = None
    if isinstance(answer, FindCoordinatorResponse) and answer.coordinators:
        message = answer.coordinators[0].error_message
    return broker_error(code, f"transactional id {transactional_id!r}", message or None)


def found(answer: Message) -> Address:
    assert isinstance(answer, FindCoordinatorResponse)
    told = answer.coordinators[0] if answer.coordinators else answer
    return Address(told.host, told.port)


def identity(answer: Message) -> tuple[int, int]:
    """The producer's id and epoch from now on; -1 where the answer has none."""
    told = cast("InitProducerIdResponse | EndTxnResponse", answer)
    return told.producer_id, told.producer_epoch
