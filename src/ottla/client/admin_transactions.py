"""Transactions as admin calls: who has one, where one is open, and how to end one. Used by `admin`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.client import admin_topics
from ottla.client.addresses import Address
from ottla.client.admin_offsets import ask_leaders
from ottla.client.admin_values import ListedTransaction, PartitionTransaction, TransactionDescription
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker
from ottla.client.errors import broker_error
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)
from ottla.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_FENCING_TIMEOUT_MS = 1_000  # of the transaction that a fencing producer never begins


async def list_transactions(
    cluster: Cluster, brokers: Iterable[Broker], states: Sequence[str], deadline_ms: int
) -> tuple[ListedTransaction, ...]:
    """Each broker knows those that it coordinates."""
    found: list[ListedTransaction] = []
    for broker in brokers:

        async def ask(deadline_ms: int, broker: Broker = broker) -> ListTransactionsResponse:
            request = ListTransactionsRequest(state_filters=states)
            answer = await cluster.call(
                broker.address, LIST_TRANSACTIONS, request, ListTransactionsResponse, deadline_ms
            )
            if answer.error_code:
                raise broker_error(answer.error_code, f"broker {broker.id}")
            return answer

        found += [
            ListedTransaction(each.transactional_id, each.producer_id, each.transaction_state, broker.id)
            for each in (await cluster.retry(ask, deadline_ms)).transaction_states
        ]
    return tuple(found)


async def describe_transaction(
    cluster: Cluster, transactional_id: str, deadline_ms: int
) -> TransactionDescription:
    async def ask(deadline_ms: int) -> TransactionDescription:
        broker = await admin_topics.find_coordinator(cluster, transactional_id, "transaction", deadline_ms)
        answer = await cluster.call(
            broker.address,
            DESCRIBE_TRANSACTIONS,
            DescribeTransactionsRequest([transactional_id]),
            DescribeTransactionsResponse,
            deadline_ms,
        )
        (state,) = answer.transaction_states
        if state.error_code:
            raise broker_error(state.error_code, f"transactional id {transactional_id!r}")
        return TransactionDescription(
            id=transactional_id,
            state=state.transaction_state,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            timeout_ms=state.transaction_timeout_ms,
            started_ms=None if state.transaction_start_time_ms < 0 else state.transaction_start_time_ms,
            partitions=tuple(
                TopicPartition(topic.topic, partition)
                for topic in state.topics
                for partition in topic.partitions
            ),
            coordinator_id=broker.id,
        )

    return await cluster.retry(ask, deadline_ms)


async def open_transactions(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline_ms: int
) -> tuple[PartitionTransaction, ...]:
    """What the partitions themselves know of transactions that have not ended."""

    async def ask(
        address: Address, targets: dict[str, list[TopicPartition]]
    ) -> dict[TopicPartition, list[PartitionTransaction]]:
        request = DescribeProducersRequest(
            [
                TopicRequest(topic, [target.partition for target in partitions])
                for topic, partitions in targets.items()
            ]
        )
        answer = await cluster.call(
            address, DESCRIBE_PRODUCERS, request, DescribeProducersResponse, deadline_ms
        )
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                target = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code:
                    raise broker_error(partition.error_code, str(target), partition.error_message)
                found[target] = [
                    PartitionTransaction(
                        target,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                        each.last_timestamp,
                    )
                    for each in partition.active_producers
                    if each.current_txn_start_offset >= 0
                ]
        return found

    answers = await ask_leaders(cluster, partitions, ask, deadline_ms)
    return tuple(each for found in answers.values() for each in found)


async def fence_producer(cluster: Cluster, transactional_id: str, deadline_ms: int) -> None:
    """Takes the transactional id's next epoch: its producer is fenced, its open transaction aborted."""

    async def ask(deadline_ms: int) -> None:
        broker = await admin_topics.find_coordinator(cluster, transactional_id, "transaction", deadline_ms)
        answer = await cluster.call(
            broker.address,
            INIT_PRODUCER_ID,
            InitProducerIdRequest(transactional_id, _FENCING_TIMEOUT_MS),
            InitProducerIdResponse,
            deadline_ms,
        )
        if answer.error_code:
            raise broker_error(answer.error_code, f"transactional id {transactional_id!r}")

    await cluster.retry(ask, deadline_ms)


async def abort_open(cluster: Cluster, hanging: PartitionTransaction, deadline_ms: int) -> None:
    """Writes an abort marker where a transaction hangs, past its coordinator."""
    target = hanging.partition
    marker = WritableTxnMarker(
        hanging.producer_id,
        hanging.producer_epoch,
        False,
        [WritableTxnMarkerTopic(target.topic, [target.partition])],
        max(hanging.coordinator_epoch, 0),
    )

    async def ask(address: Address, _targets: dict[str, list[TopicPartition]]) -> dict[TopicPartition, None]:
        request = WriteTxnMarkersRequest([marker])
        answer = await cluster.call(address, WRITE_TXN_MARKERS, request, WriteTxnMarkersResponse, deadline_ms)
        (partition,) = answer.markers[0].topics[0].partitions
        if partition.error_code:
            raise broker_error(partition.error_code, str(target))
        return {target: None}

    await ask_leaders(cluster, [target], ask, deadline_ms)
