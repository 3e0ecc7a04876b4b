"""Consumer groups (KIP-848): what members are given, when, and what is refused."""

from __future__ import annotations

import sys

import pytest

from coordinator.bench import GROUP, Topics
from coordinator.consumer_bench import Client, ConsumerBench, settle
from coordinator.simulation import durable
from ottla.coordinator.classic_group import ClassicGroup
from ottla.coordinator.consumer_group import ConsumerGroup
from ottla.coordinator.group_config import GroupConfig
from ottla.coordinator.group_state import GroupState
from ottla.coordinator.offset_commits import Commit, PartitionCommit
from ottla.coordinator.state_log import StateRecord
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

SESSION_MS = GroupConfig().consumer_session_timeout_ms


@pytest.fixture
def bench() -> ConsumerBench:
    return ConsumerBench(Topics(t=6))


def same_after_replay(bench: ConsumerBench) -> bool:
    keep = {"id", "epoch", "metadata_hash", "members", "target_epoch", "targets", "patterns", "owners"}

    def state(group: object) -> object:
        if isinstance(group, ClassicGroup):
            return durable(group)
        return {name: value for name, value in vars(group).items() if name in keep}

    replayed = bench.replayed().groups
    return {name: state(group) for name, group in bench.machine.groups.items()} == {
        name: state(group) for name, group in replayed.items()
    }


def test_the_first_member_gets_all(bench: ConsumerBench) -> None:
    first = Client(bench, "a")
    assert first.beat() is ErrorCode.NONE
    assert first.epoch == 1
    assert first.has == [f"t-{number}" for number in range(6)]
    assert bench.consumers().state is GroupState.STABLE


def test_partitions_go_to_a_new_member_only_when_they_were_given_up(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b")
    first.beat()
    second.beat()
    assert (second.epoch, second.has) == (2, []), "all are still with the first"
    held = bench.ask(first.request())  # it hears what it may keep, and has not given up the rest yet
    assert held.member_epoch == 1, "it stays in its epoch until it has"
    second.beat()
    assert second.has == []
    first.take(held)
    first.beat()
    assert (first.epoch, len(first.has)) == (2, 3)
    second.beat()
    assert len(second.has) == 3
    assert not set(first.has) & set(second.has)
    assert same_after_replay(bench)


def test_a_heartbeat_without_news_writes_nothing(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b")
    settle(first, second)
    before = len(bench.log)
    response = bench.ask(first.request(), first.id)
    assert len(bench.log) == before
    assert response.assignment is None


def test_who_stays_keeps_its_partitions_when_another_leaves(bench: ConsumerBench) -> None:
    clients = [Client(bench, name) for name in "abc"]
    settle(*clients)
    kept = set(clients[0].has)
    clients[2].leave()
    settle(*clients[:2])
    assert [len(client.has) for client in clients[:2]] == [3, 3]
    assert kept < set(clients[0].has)


def test_a_member_that_is_not_heard_of_is_removed(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b")
    settle(first, second)
    bench.advance(SESSION_MS - 1)
    assert first.beat() is ErrorCode.NONE
    bench.advance(1)
    settle(first)
    assert len(first.has) == 6
    assert second.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_has_given_up_partitions_and_must_give_up_more_is_in_another_epoch(bench: ConsumerBench) -> None:
    """Else a late commit for the first ones would be taken after another has read on."""
    first = Client(bench, "a")
    first.beat()
    Client(bench, "b").beat()
    first.beat()  # hears what to give up, and has done so
    assert (first.epoch, len(first.has)) == (1, 3)
    given_up = {("t", number) for number in range(6)} - {("t", int(each[2:])) for each in first.has}
    Client(bench, "c").beat()
    first.beat()  # says so, and hears of more
    assert (first.epoch, len(first.has)) == (2, 2)
    late = dict.fromkeys(given_up, 5)
    assert bench.commit(late, first.id, 1) is ErrorCode.STALE_MEMBER_EPOCH
    first.beat()
    assert first.epoch == 3


def test_a_member_that_does_not_give_up_partitions_in_time_is_removed(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b")
    first.beat()
    second.beat()
    stuck = first.request()
    for _ in range(61):
        response = bench.ask(stuck)
        second.beat()
        bench.advance(1_000)
    assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    settle(second)
    assert len(second.has) == 6


def test_topics_that_come_grow_and_go_are_shared_anew(bench: ConsumerBench) -> None:
    first = Client(bench, "a", ["t", "later"])
    first.beat()
    bench.topics.set("later", 1)
    settle(first)
    assert "later-0" in first.has
    bench.topics.set("later", 2)
    settle(first)
    assert "later-1" in first.has
    bench.topics.delete("later")
    settle(first)
    assert first.has == [f"t-{number}" for number in range(6)]
    bench.topics.set("stranger", 1)
    epoch = first.epoch
    settle(first)
    assert first.epoch == epoch, "it does not read that one"


def test_patterns_follow_the_topics(bench: ConsumerBench) -> None:
    first = Client(bench, "a", None, "t|orders.*")
    first.beat()
    bench.topics.set("orders_eu", 1)
    bench.topics.set("not_orders", 1)
    settle(first)
    assert first.has == ["orders_eu-0", *(f"t-{number}" for number in range(6))]
    assert same_after_replay(bench)
    first.leave()
    assert not bench.consumers().patterns


@pytest.mark.parametrize("pattern", ["(", "(?=t)", "x" * 5000])
def test_what_is_no_pattern_is_refused(bench: ConsumerBench, pattern: str) -> None:
    assert Client(bench, "a", None, pattern).beat() is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not bench.machine.groups


def test_without_an_engine_patterns_are_refused_with_the_cure(
    bench: ConsumerBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    client = Client(bench, "a", None, "never_compiled_before")
    refused = bench.ask(client.request())
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "install google-re2" in (refused.error_message or "")


def test_a_first_heartbeat_that_was_not_written_leaves_no_member(bench: ConsumerBench) -> None:
    first = Client(bench, "a")
    bench.decide(first.request(), "a")
    assert bench.group() is None
    first.beat()
    written = len(bench.log)
    bench.decide(Client(bench, "b").request(), "b")
    bench.advance(SESSION_MS - 1)
    first.beat()
    bench.advance(1)
    assert len(bench.log) == written
    assert set(bench.consumers().members) == {"a"}


def test_old_epochs_are_fenced(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b")
    settle(first, second)
    old, third = first.epoch, Client(bench, "c")
    settle(first, second, third)
    assert first.epoch == old + 1
    first.epoch = old - 1
    assert first.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    first.epoch = old + 2
    assert first.beat() is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_answer_that_was_lost_is_given_again(bench: ConsumerBench) -> None:
    first = Client(bench, "a")
    first.beat()
    bench.topics.set("t", 7)
    bench.ask(first.request())  # lost
    assert first.beat() is ErrorCode.NONE
    assert (first.epoch, len(first.has)) == (2, 7)


def test_a_static_member_that_is_away_for_a_while_finds_its_partitions(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a", instance_id="one"), Client(bench, "b")
    settle(first, second)
    epoch = bench.consumers().epoch
    assert Client(bench, "new", instance_id="one").beat() is ErrorCode.UNRELEASED_INSTANCE_ID
    assert first.leave(-2) is ErrorCode.NONE
    second.beat()
    assert len(second.has) == 3, "they wait for it"
    back = Client(bench, "new", instance_id="one")
    assert back.beat() is ErrorCode.NONE
    assert back.has == first.has
    assert bench.consumers().epoch == epoch, "nobody else has noticed"
    assert first.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert same_after_replay(bench)


def test_a_static_member_that_stays_away_is_removed(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a", instance_id="one"), Client(bench, "b")
    settle(first, second)
    first.leave(-2)
    bench.advance(SESSION_MS // 2)
    second.beat()
    bench.advance(SESSION_MS // 2)
    settle(second)
    assert len(second.has) == 6
    assert not bench.consumers().static_ids


def test_a_group_has_only_so_many_members() -> None:
    bench = ConsumerBench(Topics(t=6), GroupConfig(consumer_size_max=1))
    first = Client(bench, "a")
    first.beat()
    assert Client(bench, "b").beat() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.beat() is ErrorCode.NONE


JOIN = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
INVALID = {
    "no id": {**JOIN, "member_id": ""},
    "no timeout": {**JOIN, "rebalance_timeout_ms": -1},
    "no topics": {**JOIN, "subscribed_topic_names": None},
    "joins with partitions": {**JOIN, "topic_partitions": [TopicPartitions(partitions=[0])]},
    "no partitions told": {**JOIN, "topic_partitions": None},
    "empty instance": {**JOIN, "instance_id": ""},
    "an epoch that means nothing": {"member_epoch": -3},
    "leaves for a while without an instance": {"member_epoch": -2},
}


@pytest.mark.parametrize("fields", INVALID.values(), ids=INVALID.keys())
def test_what_no_client_sends_is_refused(bench: ConsumerBench, fields: dict[str, object]) -> None:
    request = ConsumerGroupHeartbeatRequest(**{"group_id": GROUP, "member_id": "a", **fields})
    assert bench.ask(request).error_code == ErrorCode.INVALID_REQUEST
    assert not bench.machine.groups


def test_version_0_is_given_an_id(bench: ConsumerBench) -> None:
    response = bench.ask(ConsumerGroupHeartbeatRequest(GROUP, **JOIN), version=0)
    assert response.error_code == ErrorCode.NONE
    assert response.member_id in bench.consumers().members


def test_an_unknown_assignor_is_refused(bench: ConsumerBench) -> None:
    assert Client(bench, "a", assignor="magic").beat() is ErrorCode.UNSUPPORTED_ASSIGNOR


def test_unknown_groups_and_members_are_refused(bench: ConsumerBench) -> None:
    assert Client(bench, "a", epoch=3).beat() is ErrorCode.GROUP_ID_NOT_FOUND
    Client(bench, "b").beat()
    assert Client(bench, "a", epoch=3).beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert Client(bench, "a").leave() is ErrorCode.UNKNOWN_MEMBER_ID


# -- offsets ---------------------------------------------------------------------------------------------


def test_only_the_latest_epoch_commits_and_fetches(bench: ConsumerBench) -> None:
    first = Client(bench, "a")
    first.beat()
    place = {("t", 0): 5}
    assert bench.commit(place, "a", 1) is ErrorCode.NONE
    assert bench.commit(place, "a", 0) is ErrorCode.STALE_MEMBER_EPOCH
    assert bench.commit(place, "b", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.commit(place) is ErrorCode.UNKNOWN_MEMBER_ID, "nobody commits beside the members"
    assert bench.commit(place, "a", 1, version=8) is ErrorCode.UNSUPPORTED_VERSION
    bench.machine.check_fetch(GROUP, None, -1)
    bench.machine.check_fetch(GROUP, "a", 1)
    with pytest.raises(Refused, match="STALE_MEMBER_EPOCH"):
        bench.machine.check_fetch(GROUP, "a", 0)
    first.leave()
    assert bench.commit({("t", 0): 7}) is ErrorCode.NONE, "an administrator, of an empty group"


def test_transactions_of_members_commit_with_their_epoch(bench: ConsumerBench) -> None:
    Client(bench, "a").beat()
    offsets = [PartitionCommit("t", 0, 5, -1, None)]

    def commit(member_id: str, epoch: int) -> list[StateRecord]:
        return bench.machine.commit(
            Commit(5, GROUP, epoch, member_id, None, -1, offsets), bench.now, in_transaction=True
        )

    assert commit("a", 1)
    assert commit("", -1), "a producer that does not say who it is in the group"
    with pytest.raises(Refused, match="ILLEGAL_GENERATION"):
        commit("a", 0)


def test_offsets_of_topics_that_are_read_do_not_expire() -> None:
    bench = ConsumerBench(Topics(t=1), GroupConfig(offsets_retention_ms=1))
    first = Client(bench, "a")
    first.beat()
    bench.commit({("t", 0): 5, ("other", 0): 6}, "a", 1)
    bench.advance(10)
    bench.expire()
    assert bench.committed() == {("t", 0): 5}
    first.leave()
    bench.expire()
    assert not bench.machine.groups
    assert not bench.replayed().groups


# -- the end, and the other protocol ---------------------------------------------------------------------


def test_an_empty_group_can_be_deleted(bench: ConsumerBench) -> None:
    first = Client(bench, "a", None, "t")
    first.beat()
    with pytest.raises(Refused, match="NON_EMPTY_GROUP"):
        bench.machine.delete_group(GROUP)
    bench.commit({("t", 0): 5}, "a", 1)
    first.leave()
    bench.write(bench.machine.delete_group(GROUP))
    assert not bench.machine.groups
    kept = {record.key: record.value for record in bench.log}
    assert set(kept.values()) == {None}, "every record has its tombstone"


def test_an_empty_group_changes_its_protocol_and_keeps_its_offsets(bench: ConsumerBench) -> None:
    first = Client(bench, "a")
    first.beat()
    bench.commit({("t", 0): 5}, "a", 1)
    first.leave()
    bench.join("c", version=3)
    bench.advance(10_000)
    assert isinstance(bench.machine.groups[GROUP], ClassicGroup)
    assert isinstance(bench.replayed().groups[GROUP], ClassicGroup)
    assert bench.committed() == {("t", 0): 5}
    bench.advance(600_000)  # it is not heard of again
    again = Client(bench, "b")
    assert again.beat() is ErrorCode.NONE
    assert len(again.has) == 6
    assert isinstance(bench.replayed().groups[GROUP], ConsumerGroup)
    assert bench.committed() == {("t", 0): 5}


def test_a_restart_changes_nothing_for_members(bench: ConsumerBench) -> None:
    first, second = Client(bench, "a"), Client(bench, "b", None, "t")
    settle(first, second)
    had = first.has, second.has
    length = len(bench.log)
    bench.restart()
    settle(first, second)
    assert (first.has, second.has) == had
    assert len(bench.log) == length
    bench.advance(SESSION_MS)
    assert not bench.consumers().members, "who is not heard of after it is removed"
