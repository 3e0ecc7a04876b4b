"""Transactions over broken connections and killed brokers: each is whole or gone, none is counted twice."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator

import pytest

from client.wired import WiredBroker, wired_broker
from ottla.client import Admin, ClientError, GroupMetadata, Producer, ProducerFenced, TopicPartition
from ottla.client.errors import BrokerError, TimedOut, TransactionFailed
from ottla.client.network import Network
from ottla.client.reading import read
from ottla.model.errors import ErrorCode

QUICK = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "linger.ms": 0}
_names = itertools.count()


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    with wired_broker() as broker:
        yield broker


@pytest.fixture
def topic(wired: WiredBroker) -> Iterator[str]:
    yield wired.create_topic(f"faults-{next(_names)}", partitions=2)
    assert wired.wire.faults_left == 0, "not every fault happened"


@pytest.fixture(params=["version 2", "the older way"])
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "version 2":
        monkeypatch.setattr(Network, "finalized_level", lambda *_: 0)
    return str(request.param)


def transactional(wired: WiredBroker, **settings: object) -> Producer:
    name = f"txn-{next(_names)}"
    return Producer(wired.bootstrap, **{**QUICK, "transactional.id": name, **settings})  # type: ignore[arg-type]


def values(wired: WiredBroker, topic: str) -> list[bytes | None]:
    with read(wired.bootstrap, topic, isolation_level="read_committed") as reading:
        return [record.value for record in reading]


PASSING = [
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
]


@pytest.mark.parametrize("fault", [*PASSING, "cut", "lose_answer", "garble"], ids=str)
def test_what_passes_by_itself_costs_nothing(
    wired: WiredBroker, topic: str, level: str, fault: ErrorCode | str
) -> None:
    apis = ["InitProducerId", "TxnOffsetCommit", "EndTxn"]
    if level != "version 2":
        apis += ["AddPartitionsToTxn", "AddOffsetsToTxn"]
    for api in apis:
        if isinstance(fault, ErrorCode):
            wired.wire.fail(api, fault, times=2)
        else:
            getattr(wired.wire, fault)(api)
    group = f"group-{next(_names)}"
    with transactional(wired) as producer:
        producer.init_transactions()
        for number in range(3):
            with producer.transaction():
                producer.send(topic, b"%d" % number, partition=0)
                producer.send_offsets_to_transaction({TopicPartition(topic, 0): number}, GroupMetadata(group))
    assert values(wired, topic) == [b"0", b"1", b"2"]
    with Admin(wired.bootstrap) as admin:
        assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset == 2


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"])
def test_an_error_that_only_an_abort_mends_leaves_the_producer_whole(
    wired: WiredBroker, topic: str, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "finalized_level", lambda *_: 0)
    with transactional(wired) as producer:
        producer.init_transactions()
        wired.wire.fail(api, ErrorCode.TRANSACTION_ABORTABLE)

        def work() -> None:
            with producer.transaction():
                producer.send(topic, b"value", partition=0)
                producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, GroupMetadata("group"))

        with pytest.raises(TransactionFailed, match="TRANSACTION_ABORTABLE"):
            work()
        work()
    assert values(wired, topic) == [b"value"]


@pytest.mark.parametrize("api", ["AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn"])
@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH], ids=str)
def test_a_fenced_producer_is_told_so_wherever_it_hears_of_it(
    wired: WiredBroker, topic: str, api: str, code: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "finalized_level", lambda *_: 0)
    with transactional(wired) as producer:
        producer.init_transactions()
        wired.wire.fail(api, code)

        def work() -> None:
            with producer.transaction():
                producer.send(topic, b"value", partition=0)
                producer.send_offsets_to_transaction({TopicPartition(topic, 0): 1}, GroupMetadata("group"))

        with pytest.raises(ProducerFenced):
            work()
        with pytest.raises(ProducerFenced):
            producer.begin_transaction()


def test_a_commit_that_took_too_long_is_waited_for_again(wired: WiredBroker, topic: str) -> None:
    with transactional(wired, **{"max.block.ms": 1_000, "request.timeout.ms": 2_500}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"value", partition=0)
        wired.wire.stall("EndTxn")
        with pytest.raises(TimedOut):
            producer.commit_transaction()
        with pytest.raises(ClientError, match="commit is under way"):
            producer.abort_transaction()
        for _ in range(20):
            try:
                producer.commit_transaction()
                break
            except TimedOut:
                continue
    assert values(wired, topic) == [b"value"]


@pytest.mark.usefixtures("level")
def test_a_broker_that_is_killed_leaves_every_transaction_whole_or_gone(
    wired: WiredBroker, topic: str
) -> None:
    committed = []
    with transactional(wired) as producer:
        producer.init_transactions()
        killer = threading.Timer(0.15, wired.kill)
        starter = threading.Timer(0.6, wired.restart)
        killer.start()
        starter.start()
        for number in range(60):
            with producer.transaction():
                for part in range(4):
                    producer.send(topic, b"%d.%d" % (number, part), partition=part % 2)
            committed += [b"%d.%d" % (number, part) for part in range(4)]
            if number == 20:
                killer.join()
        starter.join()
    found = values(wired, topic)
    assert sorted(filter(None, found)) == sorted(committed)
    for parity in (0, 1):
        mine = [each for each in committed if int(each[-1:]) % 2 == parity]
        assert [each for each in found if each and int(each[-1:]) % 2 == parity] == mine


def test_open_transactions_are_committed_through_a_kill(wired: WiredBroker, topic: str) -> None:
    opened = []
    for number in range(8):
        with transactional(wired) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(topic, b"%d" % number, partition=0)
            opened.append(producer.detach_transaction())
    wired.kill()
    starter = threading.Timer(0.3, wired.restart)
    with Admin(wired.bootstrap, **{"retry.backoff.ms": 5}) as admin:
        starter.start()
        outcomes = {}
        while not outcomes or any(outcomes.values()):
            outcomes = admin.end_transactions(opened, commit=True)
            assert not any(isinstance(each, BrokerError) for each in outcomes.values()), outcomes
        wired.wire.lose_answer("EndTxn", times=3)
        assert not any(admin.end_transactions(opened, commit=True).values())
    starter.join()
    assert values(wired, topic) == [b"%d" % number for number in range(8)]


def run_random_faults(wired: WiredBroker, topic: str, seed: int, rounds: int) -> None:
    """Whatever fails: what was reported committed is there once, what was aborted is not there at all."""
    chance = random.Random(seed)
    committed: list[bytes] = []
    with transactional(wired) as producer:
        producer.init_transactions()
        for number in range(rounds):
            for _ in range(chance.randrange(3)):
                api = chance.choice(["Produce", "EndTxn", "FindCoordinator", "AddPartitionsToTxn"])
                match chance.randrange(4):
                    case 0:
                        wired.wire.cut(api)
                    case 1:
                        wired.wire.lose_answer(api)
                    case 2 if api == "Produce":
                        wired.wire.fail(api, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    case 3:
                        wired.wire.cut_all()
            mine = [b"%d.%d" % (number, part) for part in range(chance.randrange(5))]
            producer.begin_transaction()
            for value in mine:
                producer.send(topic, value, partition=0)
            if chance.random() < 0.3:
                producer.abort_transaction()
                continue
            producer.commit_transaction()
            committed += mine
    wired.wire.forget_faults()
    assert values(wired, topic) == committed


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("seed", range(3))
def test_random_faults_never_show_half_a_transaction(wired: WiredBroker, seed: int) -> None:
    run_random_faults(wired, wired.create_topic(f"random-{next(_names)}"), seed, 15)


@pytest.mark.slow
@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("seed", range(100, 130))
def test_many_random_faults_never_show_half_a_transaction(wired: WiredBroker, seed: int) -> None:
    run_random_faults(wired, wired.create_topic(f"random-{next(_names)}"), seed, 40)


def test_a_two_phase_transaction_waits_for_its_outside_coordinator_as_long_as_it_takes() -> None:
    """KIP-939: other transactions are aborted when their time is over, this one is not."""
    settings = {
        "transaction.two.phase.commit.enable": "true",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    }
    outcomes = {}
    with wired_broker(settings) as wired:
        wired.create_topic("prepared")
        for two_phase in (True, False):
            more = {"transaction.two.phase.commit.enable": two_phase, "transaction.timeout.ms": 300}
            with transactional(wired, **more) as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("prepared", b"two phases" if two_phase else b"one", partition=0)
                outcomes[two_phase] = producer.detach_transaction()
        with Admin(wired.bootstrap) as admin:
            deadline = time.monotonic() + 60
            while admin.transaction(outcomes[False].transactional_id).state != "CompleteAbort":
                assert time.monotonic() < deadline
                time.sleep(0.05)
            admin.end_transaction(outcomes[True], commit=True)
            with pytest.raises(BrokerError, match="INVALID_TXN_STATE"):  # it was aborted
                admin.end_transaction(outcomes[False], commit=True)
        assert values(wired, "prepared") == [b"two phases"]
