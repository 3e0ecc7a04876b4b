"""Groups with members change their protocol (KIP-848, online migration), in both directions."""

from __future__ import annotations

from typing import TypeVar

import pytest

from coordinator.bench import GROUP, Topics
from coordinator.consumer_bench import Client, ConsumerBench, named, settle
from coordinator.test_consumer_group import same_after_replay
from ottla.coordinator.classic_formats import encode_slots, named_slots
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.consumer_members import NO_SLOTS, Slots, by_topic
from ottla.coordinator.consumer_records import ConsumerRecord
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_records import read_record
from ottla.coordinator.group_state import GroupState
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from ottla.protocol.messages.join_group import JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from ottla.protocol.messages.sync_group import SyncGroupResponse

QUICK = GroupConfig(initial_rebalance_delay_ms=0)
SESSION_MS, REBALANCE_MS = 10_000, 60_000

R = TypeVar("R")


@pytest.fixture
def bench() -> ConsumerBench:
    return ConsumerBench(Topics(t=6), QUICK)


class Classic:
    """A member of the classic protocol, step by step; what it owns is what it was last told."""

    def __init__(
        self, bench: ConsumerBench, name: str, instance_id: str | None = None, *, cooperative: bool = False
    ) -> None:
        self.bench = bench
        self.name = name
        self.instance_id = instance_id
        self.cooperative = cooperative
        self.id = ""
        self.generation = -1
        self.leads = False
        self.owned: Slots = NO_SLOTS

    @property
    def metadata(self) -> bytes:
        owned = (
            [TopicPartitions("t", ids) for ids in by_topic(self.owned).values()] if self.cooperative else []
        )
        return encode_subscription(Subscription(["t"], None, owned, self.generation))

    def ask_to_join(self) -> None:
        self.bench.join(
            self.name,
            self.id,
            version=9 if self.id or self.instance_id else 3,
            protocols={"range": self.metadata},
            instance_id=self.instance_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    def join(self) -> ErrorCode:
        self.ask_to_join()
        self.bench.advance(0)
        return self.joined()

    def joined(self) -> ErrorCode:
        response = self._answer(JoinGroupResponse)
        if response.error_code == ErrorCode.NONE:
            self.id, self.generation = response.member_id, response.generation_id
            self.leads = bool(response.members)
        return ErrorCode(response.error_code)

    def sync(self, shares: dict[str, Slots] | None = None) -> ErrorCode:
        assignments = {
            member_id: encode_slots(slots, self.metadata, self.bench.topics)
            for member_id, slots in (shares or {}).items()
        }
        self.bench.sync(self.name, self.id, self.generation, assignments, instance_id=self.instance_id)
        return self.synced()

    def synced(self) -> ErrorCode:
        response = self._answer(SyncGroupResponse)
        if response.error_code == ErrorCode.NONE:
            assigned = decode_assignment(bytes(response.assignment)).assigned_partitions
            self.owned = named_slots(assigned, self.bench.topics)
        return ErrorCode(response.error_code)

    def _answer(self, kind: type[R]) -> R:
        """The one that came for it."""
        (found,) = [each for each in self.bench.answers if each[0] == self.name]
        self.bench.answers.remove(found)
        assert isinstance(found[1], kind)
        return found[1]

    def beat(self) -> ErrorCode:
        return self.bench.heartbeat(self.id, self.generation, self.instance_id)

    def leave(self) -> ErrorCode:
        self.bench.leave(self.name, MemberIdentity(self.id, self.instance_id))
        return ErrorCode(self._answer(LeaveGroupResponse).members[0].error_code)

    @property
    def has(self) -> list[str]:
        return named(self.owned)

    def settle(self) -> None:
        """As many rounds as it takes, as stock clients go through them; it is no leader."""
        for _ in range(4):
            code = self.beat()
            if code is ErrorCode.NONE:
                return
            assert code is ErrorCode.REBALANCE_IN_PROGRESS
            assert self.join() is ErrorCode.NONE
            assert self.sync() is ErrorCode.NONE


def classic_group(bench: ConsumerBench, *members: Classic) -> None:
    """All of them in a stable generation."""
    for member in members:
        member.ask_to_join()
    bench.advance(0)
    for member in members:
        assert member.joined() is ErrorCode.NONE
    share(bench, *members)


def share(bench: ConsumerBench, *members: Classic) -> None:
    """The leader of a classic group gives each its part."""
    topic = bench.topics.find("t")
    assert topic is not None
    slots = sorted(named_slots([TopicPartitions("t", range(topic.partitions))], bench.topics))
    shares = {each.id: frozenset(slots[number :: len(members)]) for number, each in enumerate(members)}
    (leader,) = [each for each in members if each.leads]
    for member in (each for each in members if each is not leader):
        bench.sync(member.name, member.id, member.generation, instance_id=member.instance_id)
    assert leader.sync(shares) is ErrorCode.NONE
    for member in (each for each in members if each is not leader):
        assert member.synced() is ErrorCode.NONE


def kinds_written(bench: ConsumerBench, since: int) -> list[str]:
    """Names of keys, with a minus for tombstones."""
    found = []
    for record in bench.log[since:]:
        read = read_record(record)
        assert read is not None
        name = type(read.key).__name__.removesuffix("Key")
        found.append(name if read.value is not None else f"-{name}")
    return found


def test_a_member_with_the_new_protocol_makes_it_a_consumer_group(bench: ConsumerBench) -> None:
    old, new = Classic(bench, "c"), Client(bench, "n")
    classic_group(bench, old)
    assert len(old.has) == 6
    generation = old.generation
    since = len(bench.log)
    assert new.beat() is ErrorCode.NONE
    group = bench.consumers()
    assert new.epoch == group.epoch == generation + 1
    assert new.has == [], "the old one still reads them all"
    assert kinds_written(bench, since) == [
        "-GroupMetadata",
        *("Member", "ConsumerGroup", "MemberTarget", "Target", "MemberAssignment"),  # what it was
        *("Member", "ConsumerGroup", "MemberTarget", "MemberTarget", "Target", "MemberAssignment"),
    ]
    terms = group.members[old.id].classic
    assert terms is not None
    assert (terms.session_timeout_ms, terms.protocol_name) == (SESSION_MS, "range")
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is ErrorCode.NONE
    assert (old.generation, old.leads) == (generation + 1, False)
    assert old.sync() is ErrorCode.NONE
    assert new.beat() is ErrorCode.NONE
    assert [len(old.has), len(new.has)] == [3, 3]
    assert not set(old.has) & set(new.has)
    assert old.beat() is ErrorCode.NONE
    assert group.state is GroupState.STABLE
    assert same_after_replay(bench)


def test_a_cooperative_member_gives_up_only_what_it_must(bench: ConsumerBench) -> None:
    old, new = Classic(bench, "c", cooperative=True), Client(bench, "n")
    classic_group(bench, old)
    generation = old.generation
    new.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is ErrorCode.NONE
    assert old.generation == generation, "it stays in its epoch until it has given them up"
    assert old.sync() is ErrorCode.NONE
    kept = set(old.has)
    assert len(kept) == 3
    new.beat()
    assert new.has == []
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS, "it must say so"
    assert old.join() is ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    assert (old.generation, set(old.has)) == (generation + 1, kept)
    new.beat()
    assert len(new.has) == 3
    assert old.beat() is ErrorCode.NONE


def test_a_member_that_waits_for_partitions_hears_when_they_are_free(bench: ConsumerBench) -> None:
    new, old = Client(bench, "n"), Classic(bench, "c")
    new.beat()
    assert old.join() is ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    assert old.has == []
    assert old.beat() is ErrorCode.NONE
    new.beat()  # hears what to give up
    assert old.beat() is ErrorCode.NONE
    new.beat()  # has given it up
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    assert [len(new.has), len(old.has)] == [3, 3]


def test_whoever_waits_in_a_classic_group_joins_again(bench: ConsumerBench) -> None:
    first, second, new = Classic(bench, "a"), Classic(bench, "b"), Client(bench, "n")
    classic_group(bench, first)
    second.ask_to_join()  # waits for the first, which is to join again
    assert new.beat() is ErrorCode.NONE
    assert second.joined() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert isinstance(bench.group(), ConsumerGroup)
    assert second.join() is ErrorCode.NONE
    assert second.sync() is ErrorCode.NONE
    assert first.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert same_after_replay(bench)


def test_the_last_member_with_the_new_protocol_leaves_a_classic_group(bench: ConsumerBench) -> None:
    first, second, new = Classic(bench, "a"), Classic(bench, "b"), Client(bench, "n")
    classic_group(bench, first, second)
    for _ in range(3):
        new.beat()
        first.settle()
        second.settle()
    assert sorted(map(len, (first.has, second.has, new.has))) == [2, 2, 2]
    epoch, since = new.epoch, len(bench.log)
    assert new.leave() is ErrorCode.NONE
    assert kinds_written(bench, since) == [
        *["-MemberAssignment"] * 3,
        *["-MemberTarget"] * 3,
        "-Target",
        *["-Member"] * 3,
        "-ConsumerGroup",
        "GroupMetadata",
    ]
    group = bench.group()
    assert isinstance(group, ClassicGroup)
    assert (group.generation, group.state) == (epoch, GroupState.PREPARING_REBALANCE)
    assert first.beat() is second.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    first.ask_to_join()
    second.ask_to_join()
    assert first.joined() is second.joined() is ErrorCode.NONE
    assert first.generation == epoch + 1
    share(bench, first, second)
    assert [len(first.has), len(second.has)] == [3, 3]
    assert same_after_replay(bench)


def test_a_coordinator_that_fails_after_a_downgrade_still_asks_all_to_join(bench: ConsumerBench) -> None:
    """Else a member could wait for ever for what the log says it has."""
    old, new = Classic(bench, "c"), Client(bench, "n")
    new.beat()
    assert old.join() is ErrorCode.NONE
    assert old.sync() is ErrorCode.NONE
    assert old.has == []
    new.leave()
    bench.restart()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert old.join() is ErrorCode.NONE
    share(bench, old)
    assert len(old.has) == 6
    bench.restart()
    assert old.beat() is ErrorCode.NONE, "once is enough"


def test_a_dead_member_with_the_new_protocol_leaves_a_classic_group_too(bench: ConsumerBench) -> None:
    old, new = Classic(bench, "c"), Client(bench, "n")
    new.beat()
    old.join()
    old.sync()
    for _ in range(QUICK.consumer_session_timeout_ms // 5_000):
        bench.advance(5_000)
        old.beat()
    assert isinstance(bench.group(), ClassicGroup)
    assert new.beat() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_of_the_new_protocol_alone_stays_one_when_classic_members_leave(bench: ConsumerBench) -> None:
    old, new = Classic(bench, "c"), Client(bench, "n")
    new.beat()
    old.join()
    old.sync()
    assert old.leave() is ErrorCode.NONE
    settle(new)
    assert isinstance(bench.group(), ConsumerGroup)
    assert len(new.has) == 6
    assert old.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert old.leave() is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("policy", ["neither", "downgrade"])
def test_the_policy_can_forbid_an_upgrade(policy: str) -> None:
    config = GroupConfig(initial_rebalance_delay_ms=0, can_upgrade=False, can_downgrade=policy == "downgrade")
    bench = ConsumerBench(Topics(t=6), config)
    old, new = Classic(bench, "c"), Client(bench, "n")
    classic_group(bench, old)
    assert new.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert old.beat() is ErrorCode.NONE


def test_the_policy_can_forbid_a_downgrade() -> None:
    """The group stays what it is, and goes on with classic members alone."""
    bench = ConsumerBench(Topics(t=6), GroupConfig(initial_rebalance_delay_ms=0, can_downgrade=False))
    old, new = Classic(bench, "c"), Client(bench, "n")
    new.beat()
    old.join()
    old.sync()
    new.leave()
    old.settle()
    assert isinstance(bench.group(), ConsumerGroup)
    assert len(old.has) == 6
    bench.topics.set("t", 7)
    old.settle()
    assert len(old.has) == 7, "its own heartbeat finds out"


@pytest.mark.parametrize(
    ("protocol_type", "metadata"), [("connect", b"\0\0"), ("consumer", b"\0\0\0\0\0\x09"), ("consumer", b"")]
)
def test_a_group_whose_members_are_not_understood_stays_classic(
    bench: ConsumerBench, protocol_type: str, metadata: bytes
) -> None:
    bench.join("c", version=3, protocol_type=protocol_type, protocols={"x": metadata})
    bench.advance(0)
    bench.answers.clear()
    assert Client(bench, "n").beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(bench.group(), ClassicGroup)


def test_notes_of_a_custom_assignor_are_not_thrown_away(bench: ConsumerBench) -> None:
    old = Classic(bench, "c")
    old.join()
    given = encode_assignment(Assignment([TopicPartitions("t", [0])], b"my notes"), 0)
    bench.sync("c", old.id, old.generation, {old.id: given})
    bench.answers.clear()
    assert Client(bench, "n").beat() is ErrorCode.GROUP_ID_NOT_FOUND


def test_classic_members_are_refused_as_in_a_classic_group(bench: ConsumerBench) -> None:
    new, old = Client(bench, "n"), Classic(bench, "c")
    new.beat()
    old.join()
    bench.sync("c", old.id, old.generation + 1)
    assert old.synced() is ErrorCode.ILLEGAL_GENERATION
    bench.sync("c", old.id, old.generation, protocol="another")
    assert old.synced() is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.sync("c", "nobody", old.generation)
    assert old.synced() is ErrorCode.UNKNOWN_MEMBER_ID
    bench.sync("c", new.id, new.epoch)
    assert old.synced() is ErrorCode.UNKNOWN_MEMBER_ID, "it does not speak the classic protocol"
    assert bench.heartbeat(old.id, old.generation + 1) is ErrorCode.ILLEGAL_GENERATION
    assert bench.heartbeat(new.id, new.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    bench.join("d", version=3, protocols={"unknown to c": old.metadata})
    bench.join("e", version=3, protocol_type="connect")
    bench.join("f", version=3, protocols={"range": b"nonsense"})
    codes = [response.error_code for _, response in bench.answers]  # type: ignore[attr-defined]
    assert codes == [ErrorCode.INCONSISTENT_GROUP_PROTOCOL] * 3
    bench.answers.clear()
    bench.join("g", version=4)
    (_, response) = bench.answers.pop()
    assert isinstance(response, JoinGroupResponse)
    assert (response.error_code, bool(response.member_id)) == (ErrorCode.MEMBER_ID_REQUIRED, True)


def test_a_full_group_takes_no_classic_member() -> None:
    bench = ConsumerBench(Topics(t=6), GroupConfig(consumer_size_max=1))
    Client(bench, "n").beat()
    assert Classic(bench, "c").join() is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_classic_member_that_does_not_join_again_or_sync_in_time_is_removed(bench: ConsumerBench) -> None:
    new, joined, told = Client(bench, "n"), Classic(bench, "a"), Classic(bench, "b")
    new.beat()
    joined.join()  # and never asks for its assignment
    assert told.join() is ErrorCode.NONE
    told.sync()
    bench.topics.set("t", 7)
    for _ in range(REBALANCE_MS // 5_000):
        new.beat()
        assert joined.beat() is told.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        bench.advance(5_000)
    new.beat()
    assert set(bench.consumers().members) == {new.id}


def test_a_classic_member_is_heard_of_within_its_own_session(bench: ConsumerBench) -> None:
    new, old = Client(bench, "n"), Classic(bench, "c")
    new.beat()
    old.join()
    old.sync()
    bench.advance(SESSION_MS - 1)
    assert old.beat() is ErrorCode.NONE
    bench.restart()
    bench.advance(SESSION_MS - 1)
    assert old.beat() is ErrorCode.NONE
    bench.advance(SESSION_MS)
    assert old.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_commits_of_classic_members_need_their_generation(bench: ConsumerBench) -> None:
    new, old = Client(bench, "n"), Classic(bench, "c")
    new.beat()
    old.join()
    place = {("t", 0): 5}
    in_between = bench.commit(place, old.id, old.generation, version=8)
    assert in_between is ErrorCode.REBALANCE_IN_PROGRESS, "it may still read what is another's now"
    old.sync()
    assert bench.commit(place, old.id, old.generation, version=8) is ErrorCode.NONE
    assert bench.commit(place, old.id, old.generation - 1) is ErrorCode.ILLEGAL_GENERATION
    assert bench.commit(place, new.id, new.epoch, version=8) is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(Refused) as refusal:
        bench.machine.check_fetch(GROUP, old.id, old.generation + 1)
    assert refusal.value.code is ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_changes_to_the_new_protocol_and_keeps_its_partitions(bench: ConsumerBench) -> None:
    """Nobody else hears of it."""
    first, second = Classic(bench, "a", "one"), Classic(bench, "b", "two")
    classic_group(bench, first, second)
    had = first.has
    again = Client(bench, "n", instance_id="one")
    assert again.beat() is ErrorCode.NONE
    assert again.has == had
    assert again.epoch == second.generation
    assert second.beat() is ErrorCode.NONE
    assert first.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert same_after_replay(bench)


def test_a_static_member_changes_back(bench: ConsumerBench) -> None:
    new, other = Client(bench, "n", instance_id="one"), Client(bench, "o", instance_id="two")
    settle(new, other)
    had = new.has
    back = Classic(bench, "a", "one")
    assert back.join() is ErrorCode.NONE
    assert back.sync() is ErrorCode.NONE
    assert back.has == had
    assert new.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert other.beat() is ErrorCode.NONE
    last = Classic(bench, "b", "two")
    assert last.join() is ErrorCode.NONE, "the last one that spoke the new protocol is gone with this"
    assert isinstance(bench.group(), ClassicGroup)
    assert other.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert last.sync() is back.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    back.ask_to_join()
    last.ask_to_join()
    assert back.joined() is last.joined() is ErrorCode.NONE
    share(bench, back, last)
    assert same_after_replay(bench)


def test_a_classic_member_left_out_by_an_administrator_is_gone(bench: ConsumerBench) -> None:
    new, old = Client(bench, "n"), Classic(bench, "c", "one")
    new.beat()
    old.join()
    old.sync()
    bench.leave("admin", MemberIdentity("", "one"))
    assert set(bench.consumers().members) == {new.id}


def test_what_does_not_fit_into_the_log_changes_nothing(bench: ConsumerBench) -> None:
    """The outcome of a heartbeat is not written: the group is a classic one as before."""
    old = Classic(bench, "c")
    classic_group(bench, old)
    bench.decide(Client(bench, "n").request(), "n")
    assert isinstance(bench.group(), ClassicGroup)
    assert old.beat() is ErrorCode.NONE


def test_the_records_of_classic_members_are_kafkas(bench: ConsumerBench) -> None:
    """Its own bytes for the metadata of a member are in test_consumer_records; this is what is in them."""
    new, old = Client(bench, "n"), Classic(bench, "c")
    new.beat()
    old.join()
    values = [
        read.value
        for read in map(read_record, bench.log)
        if isinstance(read, ConsumerRecord) and getattr(read.key, "member_id", "") == old.id
    ]
    metadata = values[0].classic_member_metadata  # type: ignore[union-attr]
    assert metadata.session_timeout_ms == SESSION_MS
    assert [each.name for each in metadata.supported_protocols] == ["range"]
