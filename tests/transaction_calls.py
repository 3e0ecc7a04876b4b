"""Transactions over the wire, as client libraries of old and new versions ask for them."""

from __future__ import annotations

import time

from calls import at, batch_of, batches_in, fetch_request, produce_request, told, unique_name
from compat.waiting import eventually
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.fetch import PartitionData
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceRequest
from ottla.records.batch import TRANSACTIONAL, read_header
from ottla.records.content import records_of
from wire import WireClient

OLD_PRODUCE, NEW_PRODUCE = 11, 12  # since 12 partitions need not be added
NEW_END = 5  # since this one each transaction has its epoch


class Producer:
    """A transactional producer as its client library would be."""

    def __init__(self, client: WireClient, transactional_id: str | None = None, **init: bool) -> None:
        self.client = client
        self.name = transactional_id or unique_name("id")
        client.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[self.name]), 4)
        begun = self.init(**init)
        while begun.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:  # the predecessor's is being aborted
            time.sleep(0.02)
            begun = self.init(**init)
        assert begun.error_code == ErrorCode.NONE, begun
        self.id, self.epoch = begun.producer_id, begun.producer_epoch
        self.ongoing = (begun.ongoing_txn_producer_id, begun.ongoing_txn_producer_epoch)
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, version: int = 6, timeout_ms: int = 60_000, **init: bool) -> InitProducerIdResponse:
        request = InitProducerIdRequest(self.name, timeout_ms, **init)
        answer = self.client.call(request, version)
        assert isinstance(answer, InitProducerIdResponse)
        return answer

    def add(self, topic: str, *partitions: int, version: int = 3) -> ErrorCode:
        topics = [AddPartitionsToTxnTopic(topic, partitions)]
        request = AddPartitionsToTxnRequest((), self.name, self.id, self.epoch, topics)
        answer = self.client.call(request, version)
        (code,) = {
            ErrorCode(each.partition_error_code)
            for each in answer.results_by_topic_v3_and_below[0].results_by_partition
        }
        return code

    def batch(self, topic: str, value: bytes, partition: int = 0) -> bytes:
        sequence = self.sequences.get((topic, partition), 0)
        self.sequences[topic, partition] = sequence + 1
        return batch_of(value, producer=(self.id, self.epoch), sequence=sequence, flags=TRANSACTIONAL)

    def produce_request(self, topic: str, *values: bytes, partition: int = 0) -> ProduceRequest:
        """One value for each partition from `partition` on."""
        batches = [self.batch(topic, value, index) for index, value in enumerate(values, partition)]
        request = produce_request(topic, *batches, partition=partition)
        request.transactional_id = self.name  # type: ignore[misc]
        return request

    def send(
        self, topic: str, value: bytes, partition: int = 0, version: int = NEW_PRODUCE
    ) -> PartitionProduceResponse:
        request = self.produce_request(topic, value, partition=partition)
        (answer,) = self.client.call(request, version).responses[0].partition_responses
        assert isinstance(answer, PartitionProduceResponse)
        return answer

    def end(self, is_commit: bool = True, version: int = NEW_END, waits: bool = True) -> EndTxnResponse:
        """A slow disk has the broker answer before all markers are written; tests wait for them."""
        answer = self.client.call(EndTxnRequest(self.name, self.id, self.epoch, is_commit), version)
        assert isinstance(answer, EndTxnResponse)
        if answer.error_code == ErrorCode.NONE and version >= NEW_END:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        if answer.error_code == ErrorCode.NONE and waits:
            assert eventually(lambda: not self.described().transaction_state.startswith("Prepare"), 60)
        return answer

    def described(self) -> TransactionState:
        answer = self.client.call(DescribeTransactionsRequest([self.name]), 0)
        (state,) = answer.transaction_states
        assert isinstance(state, TransactionState)
        return state


def committed(client: WireClient, topic: str, partition: int = 0) -> tuple[list[bytes | None], PartitionData]:
    """What a read_committed consumer keeps, and the answer itself."""
    (data,) = told(client.call(fetch_request(topic, at(0, partition), isolation_level=1), 12).responses)
    aborted = sorted(data.aborted_transactions or (), key=lambda each: each.first_offset)
    aborting: set[int] = set()
    values: list[bytes | None] = []
    for batch in batches_in(data):
        header = read_header(batch)
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif header.producer_id not in aborting:
            values += [record.value for record in records_of(batch)]
    return values, data
