"""Who may commit offsets of a group in a transaction (KIP-447): zombies are fenced by their generation."""

from __future__ import annotations

import pytest

from calls import create_topic, unique_name
from group_calls import Member, committed, find_coordinator
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from transaction_calls import Producer
from wire import WireClient


class Committer:
    """A producer that commits the offsets of a member of its group."""

    def __init__(self, client: WireClient) -> None:
        self.topic = create_topic(client)
        self.group = unique_name("group")
        find_coordinator(client, self.group)
        self.producer = Producer(client)

    def commit(self, generation: int, member_id: str, instance_id: str | None = None) -> ErrorCode:
        producer = self.producer
        request = TxnOffsetCommitRequest(
            producer.name,
            self.group,
            producer.id,
            producer.epoch,
            generation,
            member_id,
            instance_id,
            [TxnOffsetCommitRequestTopic(self.topic, [TxnOffsetCommitRequestPartition(0, 7)])],
        )
        (answer,) = producer.client.call(request, 5).topics[0].partitions
        return ErrorCode(answer.error_code)


@pytest.fixture
def committer(client: WireClient) -> Committer:
    return Committer(client)


def test_only_a_member_of_the_generation_commits(client: WireClient, committer: Committer) -> None:
    assert committer.commit(1, "stranger") is ErrorCode.ILLEGAL_GENERATION, "there is no such group"
    member = Member(client, committer.group)
    member.settle()
    assert committer.commit(member.generation, member.id) is ErrorCode.NONE
    assert committer.commit(member.generation - 1, member.id) is ErrorCode.ILLEGAL_GENERATION
    assert committer.commit(member.generation, "stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert committer.commit(-1, "") is ErrorCode.NONE, "an old producer is taken at its word"


def test_very_many_offsets_are_taken_in_parts_and_told_as_one(
    client: WireClient, committer: Committer
) -> None:
    topic = create_topic(client, partitions=1000)
    producer = committer.producer
    many = [TxnOffsetCommitRequestPartition(index, index + 7) for index in range(1001)]
    topics = [TxnOffsetCommitRequestTopic(topic, many)]
    request = TxnOffsetCommitRequest(
        producer.name, committer.group, producer.id, producer.epoch, topics=topics
    )
    (told,) = client.call(request, 5).topics
    codes = [each.error_code for each in told.partitions]
    assert codes == [ErrorCode.NONE] * 1000 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert committed(client, committer.group, topic, 999) == -1
    assert producer.end().error_code == ErrorCode.NONE
    assert [committed(client, committer.group, topic, index) for index in (0, 300, 999)] == [7, 307, 1006]


def test_a_static_member_that_was_replaced_is_fenced(client: WireClient, committer: Committer) -> None:
    zombie = Member(client, committer.group, "instance")
    zombie.settle()
    successor = Member(client, committer.group, "instance")
    successor.settle()
    assert committer.commit(zombie.generation, zombie.id, "instance") is ErrorCode.FENCED_INSTANCE_ID
    assert committer.commit(successor.generation, successor.id, "instance") is ErrorCode.NONE


def test_offsets_are_taken_while_the_group_waits_for_its_leader(
    client: WireClient, committer: Committer
) -> None:
    """Transactional clients do not know REBALANCE_IN_PROGRESS, which other commits get then."""
    member = Member(client, committer.group)
    member.join()
    assert member.commit(committer.topic, 7) is ErrorCode.REBALANCE_IN_PROGRESS
    assert committer.commit(member.generation, member.id) is ErrorCode.NONE
