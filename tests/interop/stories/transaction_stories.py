"""Stories of transactions: what producers of all versions are told, and zombies among them."""

from __future__ import annotations

from typing import Any

from calls import LATEST, NEWEST_NAMED_FETCH, at, batch_of, fetch_request, produce_request, told
from compat.waiting import eventually
from interop.stories.group_stories import Member, fetched
from interop.stories.transcript import Side
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.produce import ProduceRequest
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
from ottla.records.batch import TRANSACTIONAL

_WITHIN_S = 60
OWN_EPOCHS_SINCE = 5  # of EndTxn
ADDED_BY_PRODUCE_SINCE = 12


class Producer:
    """A transactional id as a story knows it."""

    def __init__(self, side: Side, name: str | None = None) -> None:
        self.side = side
        self.name = name or side.transactional_id()
        self.id, self.epoch = -1, -1
        self.sequence = 0

    def init(self, what: str = "begins", version: int = 5) -> Any:
        """Noted; when its predecessor's transaction is over."""
        request = InitProducerIdRequest(self.name, 60_000)
        answer = self.side.client.call(request, version)
        while answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            answer = self.side.client.call(request, version)
        self.side.note(f"{what}, InitProducerId {version}", answer)
        self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer

    def add_request(self, *places: tuple[str, int]) -> AddPartitionsToTxnRequest:
        topics = [AddPartitionsToTxnTopic(topic, [partition]) for topic, partition in places]
        return AddPartitionsToTxnRequest((), self.name, self.id, self.epoch, topics)

    def add(self, topic: str, version: int = 3) -> None:
        self.side.ask("adds", self.add_request((topic, 0)), version)

    def produce_request(self, topic: str, partition: int = 0) -> ProduceRequest:
        producer = (self.id, self.epoch)
        batch = batch_of(b"value", producer=producer, sequence=self.sequence, flags=TRANSACTIONAL)
        request = produce_request(topic, batch, partition=partition)
        request.transactional_id = self.name  # type: ignore[misc]
        return request

    def produce(self, topic: str, what: str = "writes", version: int = ADDED_BY_PRODUCE_SINCE) -> Any:
        answer = self.side.ask(what, self.produce_request(topic), version)
        self.sequence += 1
        return answer

    def end(self, what: str, is_commit: bool = True, version: int = OWN_EPOCHS_SINCE) -> Any:
        """When the markers are written; the next begins with what it was told."""
        answer = self.side.ask(what, EndTxnRequest(self.name, self.id, self.epoch, is_commit), version)
        if answer.error_code == ErrorCode.NONE:
            self.await_end()
            if version >= OWN_EPOCHS_SINCE:
                self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return answer

    def await_end(self) -> None:
        def is_over() -> bool:
            (state,) = self.side.client.call(DescribeTransactionsRequest([self.name]), 0).transaction_states
            return not state.transaction_state.startswith("Prepare")

        assert eventually(is_over, _WITHIN_S)

    def describe(self, what: str) -> None:
        self.side.ask(what, DescribeTransactionsRequest([self.name]), 0)

    def offsets_request(
        self, group: str, topic: str, partition: int = 0, **member: Any
    ) -> TxnOffsetCommitRequest:
        topics = [TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(partition, 7)])]
        return TxnOffsetCommitRequest(self.name, group, self.id, self.epoch, topics=topics, **member)

    def told_by_all(self, what: str, topic: str, group: str) -> None:
        """What each API says to it, in each version."""
        side = self.side
        for version in side.versions(AddPartitionsToTxnRequest, 0, 3):
            side.ask(what, self.add_request((topic, 0)), version)
        for version in side.versions(AddOffsetsToTxnRequest):
            side.ask(what, AddOffsetsToTxnRequest(self.name, self.id, self.epoch, group), version)
        for version in side.versions(TxnOffsetCommitRequest):
            side.ask(what, self.offsets_request(group, topic), version)
        for version in side.versions(ProduceRequest, 3, ADDED_BY_PRODUCE_SINCE):
            side.ask(what, self.produce_request(topic), version)
        for version in side.versions(EndTxnRequest):
            for is_commit in (True, False):
                request = EndTxnRequest(self.name, self.id, self.epoch, is_commit)
                side.ask(f"{what}, {'commits' if is_commit else 'aborts'}", request, version)

    def told_when_beginning(self, what: str) -> None:
        for version in self.side.versions(InitProducerIdRequest, 3, 5):
            request = InitProducerIdRequest(self.name, 60_000, self.id, self.epoch)
            self.side.ask(f"{what}, by its epoch", request, version)


# -- the stories -------------------------------------------------------------------------------------------


def producers_that_begin(side: Side) -> None:
    name = side.transactional_id()
    side.client.call(InitProducerIdRequest(name, 60_000), 5)
    for version in side.versions(InitProducerIdRequest, 0, 5):
        side.ask("again", InitProducerIdRequest(name, 60_000), version)
        for timeout_ms in (0, -1, 2**31 - 1):
            side.ask(f"within {timeout_ms} ms", InitProducerIdRequest(name, timeout_ms), version)
        side.ask("without a name", InitProducerIdRequest("", 60_000), version)
        answer = side.ask("idempotent only", InitProducerIdRequest(None, 60_000), version)
        assert answer.producer_id >= 0
        side.ask("idempotent only, no time", InitProducerIdRequest(None, 0), version)
    for version in side.versions(InitProducerIdRequest, 3, 5):
        for producer in ((5, -1), (-1, 5)):
            side.ask(f"as {producer}", InitProducerIdRequest(name, 60_000, *producer), version)
            side.ask(f"idempotent as {producer}", InitProducerIdRequest(None, 60_000, *producer), version)
        known = side.client.call(InitProducerIdRequest(name, 60_000), version)
        for what, id_change, epoch_change in (
            ("with its epoch", 0, 0),
            ("with its last epoch", 0, 0),
            ("with an old epoch", 0, -1),
            ("with a later epoch", 0, 5),
            ("with another id", 1000, 0),
        ):
            request = InitProducerIdRequest(
                name, 60_000, known.producer_id + id_change, known.producer_epoch + epoch_change
            )
            side.ask(what, request, version)
        unknown = side.transactional_id()
        side.ask("unknown, with an epoch", InitProducerIdRequest(unknown, 60_000, 77, 3), version)


def a_name_that_nobody_knows(side: Side) -> None:
    topic, group = side.topic(), side.group()
    stranger = Producer(side)
    stranger.id, stranger.epoch = 99_999, 3
    stranger.told_by_all("a stranger", topic, group)
    stranger.told_when_beginning("a stranger")
    stranger.describe("a stranger")
    side.ask("without a name", DescribeTransactionsRequest([""]), 0)
    nobody = Producer(side, "")
    nobody.id, nobody.epoch = 99_999, 3
    for version in side.versions(AddPartitionsToTxnRequest, 0, 3):
        side.ask("without a name", nobody.add_request((topic, 0)), version)
    for version in side.versions(EndTxnRequest):
        side.ask("without a name", EndTxnRequest("", 99_999, 3, True), version)


def zombies(side: Side) -> None:
    """A successor has begun, without and with an open transaction of its own.

    Not asked: who begins by an old epoch beside an open transaction. Kafka aborts that one then; we do not.
    """
    topic, group = side.topic(), side.group()
    zombie = Producer(side)
    zombie.init()
    zombie.add(topic)
    zombie.produce(topic, version=11)
    successor = Producer(side, zombie.name)
    successor.init("its successor")
    zombie.told_by_all("a zombie", topic, group)
    zombie.told_when_beginning("a zombie")
    successor.describe("its successor has not begun")
    successor.produce(topic, "its successor writes")
    zombie.told_by_all("a zombie beside an open transaction", topic, group)
    successor.describe("its successor is open")
    successor.end("its successor")
    successor.describe("its successor is done")


def producers_that_are_done(side: Side) -> None:
    """What can be asked again, and what not."""
    topic, group = side.topic(), side.group()
    for version in side.versions(EndTxnRequest):
        for is_commit in (True, False):
            producer = Producer(side)
            producer.init()
            identity = (producer.name, producer.id, producer.epoch)
            side.ask("commits nothing", EndTxnRequest(*identity, True), version)
            producer.end("aborts nothing", False, version)
            producer.add(topic)
            producer.produce(topic, version=11)
            identity = (producer.name, producer.id, producer.epoch)
            producer.end("ends", is_commit, version)
            producer.describe("ended")
            side.ask("once more", EndTxnRequest(*identity, is_commit), version)
            side.ask("the other way", EndTxnRequest(*identity, not is_commit), version)
            if version < OWN_EPOCHS_SINCE:
                for written in side.versions(ProduceRequest, 3, 11):
                    side.ask("writes without adding", producer.produce_request(topic), written)
                for offsets in side.versions(TxnOffsetCommitRequest, 0, 4):
                    side.ask(
                        "commits offsets without adding", producer.offsets_request(group, topic), offsets
                    )
            else:
                late = Producer(side, producer.name)
                _, late.id, late.epoch = identity
                late.told_by_all("a late one", topic, group)
                late.told_when_beginning("a late one")
            producer.describe("after all")


def partitions_that_cannot_be_added(side: Side) -> None:
    topic = side.topic()
    side.group()
    producer = Producer(side)
    producer.init()
    for version in side.versions(AddPartitionsToTxnRequest, 0, 3):
        for what, places in {
            "no such topic": [("nowhere", 0)],
            "no such partition": [(topic, 9)],
            "one of two": [(topic, 0), ("nowhere", 0)],
            "an internal one": [("__consumer_offsets", 0)],
            "none": [],
        }.items():
            side.ask(what, producer.add_request(*places), version)
    producer.describe("nothing was added")
    for version in side.versions(ProduceRequest, 3, 11):
        side.ask("not added", producer.produce_request(topic), version)
    for version in side.versions(ProduceRequest, 3, ADDED_BY_PRODUCE_SINCE):
        side.ask("no such partition", producer.produce_request(topic, 9), version)


def offsets_in_transactions(side: Side) -> None:
    topic, group = side.topic(), side.group()
    member = Member(side, group, topic)
    member.settle()
    producer = Producer(side)
    producer.init()
    terms = {"generation_id": member.generation, "member_id": member.id}
    for version in side.versions(TxnOffsetCommitRequest, 3):
        side.ask("adds", AddOffsetsToTxnRequest(producer.name, producer.id, producer.epoch, group), 3)
        side.ask("of nobody", producer.offsets_request(group, topic), version)
        for what, changes in {
            "of a member": {},
            "of an old generation": {"generation_id": member.generation - 1},
            "of a later generation": {"generation_id": member.generation + 1},
            "of no generation": {"generation_id": -1},
            "of a stranger": {"member_id": "stranger"},
            "of another instance": {"group_instance_id": "other"},
        }.items():
            request = producer.offsets_request(group, topic, **{**terms, **changes})
            side.ask(what, request, version)
        side.ask("no such topic", producer.offsets_request(group, "nowhere", **terms), version)
        request = producer.offsets_request(group, topic, **terms, partition=9)
        side.ask("no such partition", request, version)
        missing = side.group("missing")
        side.ask(
            "adds another group",
            AddOffsetsToTxnRequest(producer.name, producer.id, producer.epoch, missing),
            3,
        )
        request = producer.offsets_request(missing, topic, generation_id=1, member_id="m")
        side.ask("a member of no group", request, version)
        fetched(side, "while it is open", group, topic)
        fetched(side, "stable ones while it is open", group, topic, require_stable=True)
        producer.end("aborts", False)
        fetched(side, "stable ones after it was aborted", group, topic, require_stable=True)
    side.ask("adds", AddOffsetsToTxnRequest(producer.name, producer.id, producer.epoch, group), 3)
    side.ask("of a member", producer.offsets_request(group, topic, **terms), 4)
    producer.end("commits")
    fetched(side, "after it was committed", group, topic, require_stable=True)


def what_administrators_see(side: Side) -> None:
    topic = side.topic()
    idle, open_one, done = (
        Producer(side, side.transactional_id(label)) for label in ("idle", "open", "done")
    )
    for producer in (idle, open_one, done):
        producer.init()
    for producer in (open_one, done):
        producer.produce(topic)
    done.end("commits")
    names = {open_one.name, done.name}  # Kafka counts those that never began as begun long ago

    def listed(what: str, version: int, **filters: Any) -> None:
        answer = side.client.call(ListTransactionsRequest(**filters), version)
        told = [each for each in answer.transaction_states if each.transactional_id in names]
        side.note(
            f"{what}, ListTransactions {version}", [answer.error_code, told, answer.unknown_state_filters]
        )

    for version in side.versions(ListTransactionsRequest):
        listed("all", version)
        for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["ongoing"], ["nonsense"]):
            listed(f"in {states}", version, state_filters=states)
        listed("one id", version, producer_id_filters=[open_one.id])
        listed("no such id", version, producer_id_filters=[1_000_000])
    for version in side.versions(ListTransactionsRequest, 1):
        listed("for long", version, duration_filter=3_600_000)
        listed("at all", version, duration_filter=0)
    for producer in (idle, open_one, done):
        producer.describe("described")
    side.ask(
        "producers", DescribeProducersRequest([TopicRequest(topic, [0, 9]), TopicRequest("nowhere", [0])]), 0
    )


def what_readers_are_told(side: Side) -> None:
    """Behind two that were aborted and one that was committed, one is open."""
    topic = side.topic()
    for ends_well in (True, False, False, True):
        producer = Producer(side)
        producer.init()
        producer.produce(topic)
        producer.end("ends", ends_well)
    open_one = Producer(side)
    open_one.init()
    open_one.produce(topic, "is left open")
    _read(side, "one is open", topic)
    open_one.end("ends", False)
    _read(side, "none is open", topic)


def _read(side: Side, what: str, topic: str) -> None:
    for isolation in (0, 1):
        for version in side.versions(FetchRequest, 4, NEWEST_NAMED_FETCH):
            for offset in (0, 3, 8):
                request = fetch_request(topic, at(offset), isolation_level=isolation)
                (data,) = told(side.client.call(request, version).responses)
                places = (data.high_watermark, data.last_stable_offset, data.aborted_transactions)
                side.note(f"{what}, Fetch {version} from {offset} at {isolation}", (data.error_code, *places))
        for version in side.versions(ListOffsetsRequest, 2):
            places = [ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=LATEST)])]
            side.ask(
                f"{what} at {isolation}",
                ListOffsetsRequest(-1, isolation, places),
                version,
            )
    offsets = [DeleteRecordsPartition(0, -1)]
    side.ask(f"{what}, to the end", DeleteRecordsRequest([DeleteRecordsTopic(topic, offsets)], 30_000), 2)


def markers_of_an_administrator(side: Side) -> None:
    topic = side.topic()
    producer = Producer(side)
    producer.init()
    producer.produce(topic)
    for version in side.versions(WriteTxnMarkersRequest):
        for what, epoch, place in (
            ("of no partition", producer.epoch, (topic, 9)),
            ("of no topic", producer.epoch, ("nowhere", 0)),
        ):
            marker = WritableTxnMarker(
                producer.id, epoch, False, [WritableTxnMarkerTopic(place[0], [place[1]])]
            )
            side.ask(what, WriteTxnMarkersRequest([marker]), version)
    marker = WritableTxnMarker(producer.id, producer.epoch, False, [WritableTxnMarkerTopic(topic, [0])])
    side.ask("ends it", WriteTxnMarkersRequest([marker]), 1)
    side.ask("producers", DescribeProducersRequest([TopicRequest(topic, [0])]), 0)
    side.ask("goes on", producer.produce_request(topic), 12)
    producer.end("commits")


def epochs_that_run_out(side: Side) -> None:
    """The largest epoch is never given to a producer, so that it can always be fenced."""
    topic, group = side.topic(), side.group()
    old, new = Producer(side), Producer(side)
    for producer in (old, new):
        producer.init()
        _raise_epoch(producer, 32_764)
    old.init("nearly at the end", 3)
    zombie = Producer(side, old.name)
    zombie.id, zombie.epoch = old.id, old.epoch
    old.add(topic)
    old.produce(topic, version=11)
    old.end("the last epoch but one", version=4)
    old.init("a new id", 3)
    zombie.told_by_all("the old id", topic, group)
    for _ in range(4):
        identity = (new.name, new.id, new.epoch)
        new.produce(topic)
        new.end("by the new rules")
        new.describe("ended")
        side.ask("once more", EndTxnRequest(*identity, True), OWN_EPOCHS_SINCE)


def _raise_epoch(producer: Producer, epoch: int) -> None:
    client, request = producer.side.client, InitProducerIdRequest(producer.name, 60_000)
    while producer.epoch < epoch:
        count = min(200, epoch - producer.epoch)
        client.send_together(*[(request, 5)] * count)
        answers = [client.receive() for _ in range(count)]
        producer.epoch = max(each.producer_epoch for each in answers if each.error_code == ErrorCode.NONE)
    assert producer.epoch == epoch


STORIES = [
    producers_that_begin,
    a_name_that_nobody_knows,
    zombies,
    producers_that_are_done,
    partitions_that_cannot_be_added,
    offsets_in_transactions,
    what_administrators_see,
    what_readers_are_told,
    markers_of_an_administrator,
    epochs_that_run_out,
]
