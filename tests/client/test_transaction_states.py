"""The states of a transactional producer, without a broker: what is allowed when, and what is asked for."""

from __future__ import annotations

import random

import pytest

from ottla.client.accumulator import Accumulator
from ottla.client.addresses import Address
from ottla.client.admin_values import CommittedOffset, GroupMetadata
from ottla.client.backoff import Backoff
from ottla.client.errors import (
    BrokerError,
    ClientError,
    Disconnected,
    Misused,
    ProducerFenced,
    TransactionFailed,
)
from ottla.client.sequences import Sequences
from ottla.client.transaction_requests import Kind, Request, Verdict, judge
from ottla.client.transactions import State, Transactions
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition
from ottla.protocol.fields import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from ottla.protocol.messages.end_txn import EndTxnResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorResponse
from ottla.protocol.messages.init_producer_id import InitProducerIdResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

PLACE = TopicPartition("t", 0)
GROUP = GroupMetadata("g")


class Bench:
    """Answers what the machine asks for, as a broker of that level would."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.batches = Accumulator(1000)
        self.sequences = Sequences(enabled=True, transactional=True)
        self.machine = Transactions("id", 1000, self.sequences, self.batches, Backoff(1, 10))
        self.asked: list[Kind] = []
        self.now_ms = 0
        self.epoch = 0

    def answer(self, request: Request, code: ErrorCode = ErrorCode.NONE) -> Message:
        match request.kind:
            case Kind.FIND_COORDINATOR | Kind.FIND_GROUP_COORDINATOR:
                return FindCoordinatorResponse(error_code=code, host="localhost", port=9092)
            case Kind.INIT:
                self.epoch += 0 if code else 1
                return InitProducerIdResponse(0, code, 7, self.epoch)
            case Kind.ADD_PARTITIONS:
                result = AddPartitionsToTxnPartitionResult(0, code)
                topics = [AddPartitionsToTxnTopicResult("t", [result])]
                return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
            case Kind.ADD_OFFSETS:
                return AddOffsetsToTxnResponse(0, code)
            case Kind.COMMIT_OFFSETS:
                results = [TxnOffsetCommitResponsePartition(0, code)]
                return TxnOffsetCommitResponse(0, [TxnOffsetCommitResponseTopic("t", results)])
            case Kind.END:
                if self.level < 2 or code:
                    return EndTxnResponse(0, code)
                self.epoch += 1
                return EndTxnResponse(0, code, 7, self.epoch)

    def next(self) -> Request | None:
        self.now_ms += 10_000  # beyond any pause
        request = self.machine.next_request(self.now_ms)
        if request is not None:
            self.asked.append(request.kind)
        return request

    def settle(self) -> None:
        """Until there is nothing to ask for."""
        while (request := self.next()) is not None:
            self.machine.level = self.level
            self.machine.take(request, self.answer(request), self.now_ms)

    def begun(self) -> Bench:
        self.machine.initialize()
        self.settle()
        self.machine.begin()
        return self


def test_what_is_asked_for_with_version_2() -> None:
    bench = Bench(2).begun()
    assert bench.machine.may_send(PLACE)
    bench.machine.add_offsets(GROUP, {PLACE: CommittedOffset(1)})
    bench.settle()
    done = bench.machine.commit()
    bench.settle()
    assert done.is_done
    assert done.error is None
    assert bench.asked == [
        Kind.FIND_COORDINATOR,
        Kind.INIT,
        Kind.FIND_GROUP_COORDINATOR,
        Kind.COMMIT_OFFSETS,
        Kind.END,
    ]
    assert (bench.sequences.producer_id, bench.sequences.epoch) == (7, 2), "each transaction has its epoch"


def test_what_is_asked_for_before_version_2() -> None:
    bench = Bench(0).begun()
    assert not bench.machine.may_send(PLACE), "it is added first"
    bench.settle()
    assert bench.machine.may_send(PLACE)
    bench.machine.add_offsets(GROUP, {PLACE: CommittedOffset(1)})
    bench.settle()
    bench.machine.commit()
    bench.settle()
    assert bench.asked[2:] == [
        Kind.ADD_PARTITIONS,
        Kind.ADD_OFFSETS,
        Kind.FIND_GROUP_COORDINATOR,
        Kind.COMMIT_OFFSETS,
        Kind.END,
    ]
    assert bench.sequences.epoch == 1
    bench.machine.begin()
    bench.machine.may_send(PLACE)
    bench.settle()
    bench.sequences.is_broken = True  # a batch with a sequence was lost
    bench.machine.batch_failed(ClientError("lost"))
    bench.machine.abort()
    bench.settle()
    assert bench.asked[-2:] == [Kind.END, Kind.INIT], "the abort raises the epoch"
    assert bench.sequences.epoch == 2
    assert bench.machine.state is State.READY


@pytest.mark.parametrize("commit", [True, False])
def test_an_empty_transaction_asks_for_nothing(commit: bool) -> None:
    bench = Bench(2).begun()
    before = len(bench.asked)
    done = bench.machine.commit() if commit else bench.machine.abort()
    bench.settle()
    assert done.is_done
    assert len(bench.asked) == before


def test_a_commit_waits_for_every_batch_and_an_abort_for_those_in_flight() -> None:
    bench = Bench(2).begun()
    batch, _ = bench.batches.append("t", 0, 0, None, b"", (), 10, 0)
    bench.machine.may_send(PLACE)
    bench.machine.commit()
    assert bench.next() is None
    batch.lane.queue.clear()
    batch.lane.in_flight.append(batch)
    assert bench.next() is None
    bench.machine.batch_failed(ClientError("lost"))
    done = bench.machine.abort()
    assert bench.next() is None
    batch.lane.in_flight.clear()
    bench.settle()
    assert done.is_done
    assert bench.machine.state is State.READY


@pytest.mark.parametrize("code", [each for each in ErrorCode if each is not ErrorCode.NONE], ids=str)
@pytest.mark.parametrize("level", [0, 2])
def test_every_error_of_a_commit_is_asked_again_told_or_the_end(code: ErrorCode, level: int) -> None:
    bench = Bench(level).begun()
    bench.machine.may_send(PLACE)
    bench.settle()
    operation = bench.machine.commit()
    request = bench.next()
    assert request is not None
    assert request.kind is Kind.END
    bench.machine.take(request, bench.answer(request, code), bench.now_ms)
    match judge(code):
        case Verdict.ASK_AGAIN | Verdict.FIND_AGAIN:
            assert not operation.is_done
            bench.settle()
            assert operation.is_done
            assert operation.error is None
        case Verdict.ABORT:
            assert isinstance(operation.error, TransactionFailed)
            assert bench.machine.state is State.MUST_ABORT
        case _:
            assert operation.error is not None
            assert bench.machine.state is State.FATAL
    fencing = code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert isinstance(operation.error, ProducerFenced) == fencing


@pytest.mark.parametrize("seed", range(60))
def test_random_lives_end_in_order(seed: int) -> None:
    """Callers in any order, answers of any kind: no assertion fails, and what was committed was whole."""
    chance = random.Random(seed)
    bench = Bench(chance.choice([0, 2]))
    machine = bench.machine
    codes = [ErrorCode.NONE] * 6 + [
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.TRANSACTION_ABORTABLE,
    ]
    if chance.random() < 0.2:
        codes.append(ErrorCode.PRODUCER_FENCED)
    lost = False
    for _ in range(60):
        call = chance.choice(["initialize", "begin", "commit", "abort", "offsets", "send", "lose", "answer"])
        try:
            match call:
                case "initialize" | "abort":
                    getattr(machine, call)()
                case "begin":
                    machine.begin()
                    lost = False
                case "commit":
                    machine.commit()
                    assert not lost
                case "offsets":
                    machine.add_offsets(GROUP, {PLACE: CommittedOffset(1)})
                case "send":
                    machine.may_send(PLACE)
                case "lose":
                    lost = lost or machine.is_sending
                    machine.batch_failed(ClientError("lost"))
                case "answer":
                    request = bench.next()
                    if request is not None:
                        machine.level = bench.level
                        gone = Disconnected("localhost", "gone")
                        result = (
                            gone if chance.random() < 0.1 else bench.answer(request, chance.choice(codes))
                        )
                        machine.take(request, result, bench.now_ms)
        except (Misused, TransactionFailed):
            continue
        except BrokerError:
            assert machine.state is State.FATAL
    assert machine.coordinator in (None, Address("localhost", 9092))
