"""kill -9 of a real broker while its coordinator ends a transaction: it is there as a whole, or not at all.

Each transaction writes its number to many partitions and as a group's offset. The broker dies at a random
moment after it was asked to commit: before the decision, between decision and markers, among the markers, or
after them.
"""

from __future__ import annotations

import random
import time

import pytest

from calls import create_topic, unique_name
from compat.waiting import eventually
from group_calls import find_coordinator
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import PartitionData
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.testing import BrokerProcess
from transaction_calls import NEW_END, NEW_PRODUCE, Producer, committed
from wire import WireClient

PARTITIONS = 20
PATIENCE_S = 60


class Ledger:
    """A producer whose n-th transaction writes n everywhere, and what readers see of it."""

    def __init__(self, client: WireClient) -> None:
        self.client = client
        self.group = unique_name("group")
        self.topic = create_topic(client, partitions=PARTITIONS)
        find_coordinator(client, self.group)
        self.producer = Producer(client)

    def connect(self, bootstrap: str) -> None:
        self.client.close()
        self.client = self.producer.client = WireClient(bootstrap)

    def write(self, number: int) -> None:
        request = self.producer.produce_request(self.topic, *[b"%d" % number] * PARTITIONS)
        answers = self.client.call(request, NEW_PRODUCE).responses[0].partition_responses
        assert {each.error_code for each in answers} == {ErrorCode.NONE}
        topics = [TxnOffsetCommitRequestTopic(self.topic, [TxnOffsetCommitRequestPartition(0, number)])]
        producer = self.producer
        commit = TxnOffsetCommitRequest(producer.name, self.group, producer.id, producer.epoch, topics=topics)
        (answer,) = self.client.call(commit, 5).topics[0].partitions
        assert answer.error_code == ErrorCode.NONE

    def ask_to_commit(self) -> None:
        producer = self.producer
        self.client.send(EndTxnRequest(producer.name, producer.id, producer.epoch, True), NEW_END)

    def state(self) -> str:
        """What the coordinator says of the transaction; empty while it does not know."""
        described = self.producer.described()
        return described.transaction_state if described.error_code == ErrorCode.NONE else ""

    def is_settled(self) -> bool:
        """The transaction is open, or has ended and left nothing to do."""
        return self.state() in ("Ongoing", "CompleteCommit")

    def commit(self) -> bool:
        """As a client does that did not hear of its first try."""
        code = self.producer.end().error_code
        assert code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS), ErrorCode(code).name
        return code == ErrorCode.NONE

    def seen(self) -> set[int]:
        """The last number that was committed, in each partition and as the offset: all the same."""
        return {int(values[-1] or 0) if values else 0 for values, _ in self._partitions()} | {self.offset()}

    def is_stable(self) -> bool:
        """No partition waits for the end of a transaction."""
        return all(data.last_stable_offset == data.high_watermark for _, data in self._partitions())

    def offset(self) -> int:
        assert eventually(lambda: self._group().error_code == ErrorCode.NONE, PATIENCE_S), "loaded"
        (found,) = self._group().topics[0].partitions
        assert found.error_code == ErrorCode.NONE
        return max(0, found.committed_offset)

    def _group(self) -> OffsetFetchResponseGroup:
        topics = [OffsetFetchRequestTopics(self.topic, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group, topics=topics)])
        (group,) = self.client.call(request, 8).groups
        assert isinstance(group, OffsetFetchResponseGroup)
        assert group.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return group

    def _partitions(self) -> list[tuple[list[bytes | None], PartitionData]]:
        return [committed(self.client, self.topic, partition) for partition in range(PARTITIONS)]


def cut_commits_short(rounds: int, seed: int) -> list[str]:
    """The states in which the coordinator was found."""
    rng = random.Random(seed)
    found = []
    with BrokerProcess() as broker:
        ledger = Ledger(WireClient(broker.bootstrap))
        for number in range(1, rounds + 1):
            ledger.write(number)
            ledger.ask_to_commit()
            time.sleep(rng.uniform(0, 0.006))
            broker.kill()
            broker.start()
            ledger.connect(broker.bootstrap)
            assert ledger.offset() in (number - 1, number), "a committed offset went back, or ahead"
            assert eventually(ledger.is_settled, PATIENCE_S)
            found.append(ledger.state())
            assert ledger.seen() == {number if found[-1] == "CompleteCommit" else number - 1}
            assert eventually(ledger.commit, PATIENCE_S)
            assert ledger.seen() == {number}
            assert ledger.is_stable()
        ledger.client.close()
    return found


@pytest.mark.timeout(300)
def test_a_commit_cut_short_is_whole_or_not_there_and_no_offset_goes_back() -> None:
    cut_commits_short(rounds=5, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.timeout(1800)
def test_commits_cut_short_are_whole_or_not_there_and_no_offset_goes_back(seed: int) -> None:
    assert set(cut_commits_short(rounds=60, seed=seed)) == {"Ongoing", "CompleteCommit"}
