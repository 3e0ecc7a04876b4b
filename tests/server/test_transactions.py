"""Transactions over the wire, in the versions of old and new clients, through restarts and fencing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from calls import (
    batch_of,
    create_topic,
    describe_topic,
    end_offset,
    produce,
    unique_name,
    values_from,
)
from compat.waiting import eventually
from in_process import InProcessBroker, running_broker
from node.sick_disk import SickFiles
from ottla.model.errors import ErrorCode
from ottla.model.topics import TRANSACTIONS_TOPIC
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.server import transaction_service
from transaction_calls import NEW_PRODUCE, OLD_PRODUCE, Producer, committed
from wire import WireClient


@pytest.fixture
def topic(client: WireClient) -> str:
    return create_topic(client, partitions=3)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("end_version", range(5))
def test_an_old_client_adds_writes_and_ends(
    client: WireClient, topic: str, version: int, end_version: int
) -> None:
    producer = Producer(client)
    for is_commit in (True, False, True):
        assert producer.add(topic, 0, version=version) is ErrorCode.NONE
        assert producer.send(topic, b"%d" % is_commit, version=OLD_PRODUCE).error_code == ErrorCode.NONE
        assert producer.end(is_commit, end_version).error_code == ErrorCode.NONE
    assert committed(client, topic)[0] == [b"1", b"1"]
    assert producer.epoch == 0


def test_a_new_client_just_writes_and_each_transaction_has_its_epoch(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    for number, is_commit in enumerate((True, False, True)):
        for partition in range(3):
            assert producer.send(topic, b"%d" % number, partition).error_code == ErrorCode.NONE
        assert producer.described().topics[0].partitions == (0, 1, 2)
        assert producer.end(is_commit).error_code == ErrorCode.NONE
        assert producer.epoch == number + 1
    assert committed(client, topic)[0] == [b"0", b"2"]


def test_requests_behind_the_first_of_a_partition_keep_their_order(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    requests = [producer.produce_request(topic, b"%d" % number) for number in range(5)]
    for request in requests:
        client.send(request, NEW_PRODUCE)
    for number in range(len(requests)):
        (answer,) = client.receive().responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number)


def test_requests_behind_the_first_have_their_own_partitions_added(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    client.send_together(
        *((producer.produce_request(topic, b"v", partition=number % 3), NEW_PRODUCE) for number in range(6))
    )
    for number in range(6):
        (answer,) = client.receive().responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, number // 3)
    assert producer.described().topics[0].partitions == (0, 1, 2)


@pytest.mark.parametrize(
    ("version", "code"),
    [(9, ErrorCode.INVALID_TXN_STATE), (OLD_PRODUCE, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_a_partition_that_was_not_added_is_not_written_to(
    client: WireClient, topic: str, version: int, code: ErrorCode
) -> None:
    producer = Producer(client)
    assert producer.send(topic, b"v", version=version).error_code == code
    assert producer.add(topic, 1) is ErrorCode.NONE
    assert producer.send(topic, b"v", version=version).error_code == code
    assert end_offset(client, topic) == 0


def test_a_new_producer_fences_the_old_one_and_aborts_its_transaction(client: WireClient, topic: str) -> None:
    zombie = Producer(client)
    zombie.send(topic, b"zombie")
    successor = Producer(client, zombie.name)
    assert successor.epoch > zombie.epoch
    assert zombie.send(topic, b"more").error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(topic, 1, version=1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.add(topic, 1, version=3) is ErrorCode.PRODUCER_FENCED
    assert zombie.end(version=1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert zombie.end(version=2).error_code == ErrorCode.PRODUCER_FENCED
    successor.send(topic, b"successor")
    successor.end()
    assert committed(client, topic)[0] == [b"successor"]


def test_the_last_stable_offset_stops_at_an_open_transaction(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    produce(client, topic, batch_of(b"before"))
    producer.send(topic, b"open")
    produce(client, topic, batch_of(b"behind"))
    values, data = committed(client, topic)
    assert values == [b"before"]
    assert (data.last_stable_offset, data.high_watermark) == (1, 3)
    producer.end(is_commit=False)
    values, data = committed(client, topic)
    assert values == [b"before", b"behind"]
    assert (data.last_stable_offset, data.high_watermark) == (4, 4)
    assert data.aborted_transactions is not None
    assert [each.first_offset for each in data.aborted_transactions] == [1]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_count_when_the_transaction_commits(
    client: WireClient, topic: str, version: int, is_commit: bool
) -> None:
    group = unique_name("group")
    client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
    producer = Producer(client)
    if version < 5:
        added = client.call(AddOffsetsToTxnRequest(producer.name, producer.id, producer.epoch, group), 3)
        assert added.error_code == ErrorCode.NONE
    topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 7)])]
    commit = TxnOffsetCommitRequest(producer.name, group, producer.id, producer.epoch, topics=topics)
    (answer,) = client.call(commit, version).topics[0].partitions
    assert answer.error_code == ErrorCode.NONE

    def offset(require_stable: bool) -> tuple[int, int]:
        asked = [
            OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
        ]
        fetched = client.call(OffsetFetchRequest(groups=asked, require_stable=require_stable), 8)
        (found,) = fetched.groups[0].topics[0].partitions
        return found.error_code, found.committed_offset

    assert offset(require_stable=False) == (ErrorCode.NONE, -1)
    assert offset(require_stable=True)[0] == ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert producer.end(is_commit).error_code == ErrorCode.NONE
    assert offset(require_stable=True) == (ErrorCode.NONE, 7 if is_commit else -1)


def test_offsets_of_a_group_that_was_not_added_are_refused(client: WireClient, topic: str) -> None:
    group = unique_name("group")
    client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
    producer = Producer(client)
    topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 7)])]
    commit = TxnOffsetCommitRequest(producer.name, group, producer.id, producer.epoch, topics=topics)
    for version, code in ((3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)):
        (answer,) = client.call(commit, version).topics[0].partitions
        assert answer.error_code == code


def test_brokers_add_and_verify_many_transactions_at_once(client: WireClient, topic: str) -> None:
    adding, asking = Producer(client), Producer(client)

    def ask(verify: bool, version: int = 5) -> list[ErrorCode]:
        transactions = [
            AddPartitionsToTxnTransaction(
                each.name, each.id, each.epoch, verify, [AddPartitionsToTxnTopic(topic, [0])]
            )
            for each in (adding, asking)
        ]
        answer = client.call(AddPartitionsToTxnRequest(transactions), version)
        return [
            ErrorCode(each.topic_results[0].results_by_partition[0].partition_error_code)
            for each in answer.results_by_transaction
        ]

    adding.add(topic, 0)
    assert ask(verify=True) == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert ask(verify=True, version=4) == [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE]
    assert ask(verify=False) == [ErrorCode.NONE, ErrorCode.NONE]
    assert ask(verify=True) == [ErrorCode.NONE, ErrorCode.NONE]


def test_nothing_is_added_when_one_partition_is_not_there(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    topics = [AddPartitionsToTxnTopic(topic, [0]), AddPartitionsToTxnTopic("nowhere", [0])]
    answer = client.call(AddPartitionsToTxnRequest((), producer.name, producer.id, producer.epoch, topics), 3)
    codes = [
        each.results_by_partition[0].partition_error_code for each in answer.results_by_topic_v3_and_below
    ]
    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.described().transaction_state == "Empty"


@pytest.mark.parametrize("timeout_ms", [0, -1, 15 * 60 * 1000 + 1])
def test_a_timeout_beyond_the_limit_is_refused(client: WireClient, timeout_ms: int) -> None:
    producer = Producer(client)
    assert producer.init(timeout_ms=timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_two_phase_commit_is_refused_unless_it_is_enabled(client: WireClient) -> None:
    producer = Producer(client)
    refused = producer.init(enable_2pc=True)
    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_transactions_and_producers_are_told(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    unknown = client.call(DescribeTransactionsRequest(["nobody"]), 0).transaction_states[0]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert (producer.described().transaction_state, producer.described().topics) == ("Empty", ())
    producer.send(topic, b"v")
    listed = client.call(ListTransactionsRequest(["Ongoing", "Odd"], [producer.id]), 1)
    assert [each.transactional_id for each in listed.transaction_states] == [producer.name]
    assert listed.unknown_state_filters == ("Odd",)
    assert client.call(ListTransactionsRequest(duration_filter=3_600_000), 1).transaction_states == ()
    asked = DescribeProducersRequest([TopicRequest(topic, [0, 9])])
    found, missing = client.call(asked, 0).topics[0].partitions
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (state,) = found.active_producers
    assert (state.producer_id, state.current_txn_start_offset, state.last_sequence) == (producer.id, 0, 0)
    producer.end()
    assert producer.described().transaction_state == "CompleteCommit"


def test_an_administrator_ends_a_hanging_transaction(client: WireClient, topic: str) -> None:
    producer = Producer(client)
    producer.send(topic, b"hanging")
    marker = WritableTxnMarker(producer.id, producer.epoch, False, [WritableTxnMarkerTopic(topic, [0, 9])], 0)
    (result,) = client.call(WriteTxnMarkersRequest([marker]), 1).markers
    codes = [each.error_code for each in result.topics[0].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(client, topic)[1].last_stable_offset == 2


def test_clients_may_not_write_the_coordinators_topic(client: WireClient) -> None:
    Producer(client)
    answer = produce(client, TRANSACTIONS_TOPIC, batch_of(b"v"))
    assert answer.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert describe_topic(client, TRANSACTIONS_TOPIC).is_internal


def test_the_end_of_a_transaction_without_partitions_is_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_service, "_HOLD_MS_MAX", 3_600_000)  # longer than the client waits
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        producer = Producer(client)
        assert producer.end(is_commit=False).error_code == ErrorCode.NONE
        assert producer.epoch == 1


def test_ids_that_nobody_uses_are_forgotten(tmp_path: Path) -> None:
    settings = {
        "transactional.id.expiration.ms": "1",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "20",
    }
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        producer = Producer(client)
        forgotten = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert eventually(lambda: producer.described().error_code == forgotten, 30)
        assert producer.send(topic, b"v").error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_end_that_the_disk_takes_too_late_for_its_answer_is_carried_out(tmp_path: Path) -> None:
    disk = SickFiles()
    with running_broker(tmp_path, files=disk) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        producer = Producer(client)
        assert producer.send(topic, b"v").error_code == ErrorCode.NONE
        running.on_owner(lambda: wait_for_writes(running, 50))
        disk.held.clear()
        assert producer.end().error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        running.on_owner(lambda: wait_for_writes(running, 60_000))
        disk.held.set()
        assert eventually(lambda: producer.described().transaction_state == "CompleteCommit", 60)
        assert committed(client, topic)[0] == [b"v"]


def wait_for_writes(running: InProcessBroker, timeout_ms: int) -> None:
    running.broker._services.transactions.topic.commit_timeout_ms = timeout_ms


# -- restarts ------------------------------------------------------------------------------------------------


@pytest.fixture
def two_phase(tmp_path: Path) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path, {"transaction.two.phase.commit.enable": "true"}) as running:
        yield running


def test_a_prepared_transaction_is_ended_by_the_next_producer(two_phase: InProcessBroker) -> None:
    with WireClient(two_phase.bootstrap) as client:
        topic = create_topic(client)
        first = Producer(client, enable_2pc=True)
        first.send(topic, b"prepared")
        second = Producer(client, first.name, enable_2pc=True, keep_prepared_txn=True)
        assert second.ongoing == (first.id, first.epoch)
        assert first.end().error_code == ErrorCode.PRODUCER_FENCED
        assert second.end(is_commit=True).error_code == ErrorCode.NONE
        second.send(topic, b"next")
        second.end()
        assert committed(client, topic)[0] == [b"prepared", b"next"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_an_open_transaction_goes_on_after_a_restart(tmp_path: Path, is_commit: bool) -> None:
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        producer = Producer(client)
        producer.send(topic, b"before")
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        producer.client = client
        assert committed(client, topic)[1].last_stable_offset == 0
        assert eventually(lambda: producer.described().error_code == ErrorCode.NONE), "loaded"
        assert producer.send(topic, b"after").error_code == ErrorCode.NONE
        assert producer.end(is_commit).error_code == ErrorCode.NONE
        expected: Sequence[bytes] = [b"before", b"after"] if is_commit else []
        assert committed(client, topic)[0] == expected
        assert values_from(client, topic)[:2] == [b"before", b"after"]
