"""Groups through the admin client; their members are stock consumers."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from client.conftest import NewTopicName
from compat.broker import unique_name
from ottla.client.admin import Admin
from ottla.client.admin_values import CommittedOffset
from ottla.client.errors import BrokerError
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicPartition


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_is_listed_described_and_deleted(
    bootstrap: str, admin: Admin, new_topic: NewTopicName, protocol: str
) -> None:
    topic, group = new_topic(2), unique_name("group")
    with Producer(bootstrap) as producer:
        producer.send(topic, b"", partition=0)
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "client.id": "stock",
        }
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 60
    while consumer.poll(0.2) is None:
        assert time.monotonic() < deadline
    consumer.commit(asynchronous=False)

    (listing,) = [each for each in admin.groups() if each.id == group]
    assert listing.protocol_type == "consumer"
    described = admin.group(group)
    assert described.state == "Stable"
    assert described.coordinator == admin.find_coordinator(group)
    (member,) = described.members
    assert member.client_id == "stock"
    assert set(member.assignment) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert admin.group_offsets(group)[TopicPartition(topic, 0)].offset == 1
    with pytest.raises(BrokerError, match=r"has members.*stop its consumers"):
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): 0})
    outcome = admin.delete_groups([group])[group]
    assert isinstance(outcome, BrokerError)
    assert outcome.code is ErrorCode.NON_EMPTY_GROUP

    consumer.close()
    assert admin.group(group).members == ()
    assert admin.delete_groups([group]) == {group: None}
    assert group not in {each.id for each in admin.groups()}


def test_offsets_of_an_empty_group_are_set_and_deleted(admin: Admin, new_topic: NewTopicName) -> None:
    topic, group = new_topic(2), unique_name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert admin.group_offsets(group) == {}
    admin.alter_group_offsets(group, {first: 5, second: CommittedOffset(7, metadata="note")})
    assert admin.group_offsets(group, [second]) == {second: CommittedOffset(7, None, "note")}
    assert {target: each.offset for target, each in admin.group_offsets(group).items()} == {
        first: 5,
        second: 7,
    }
    admin.delete_group_offsets(group, [first])
    assert set(admin.group_offsets(group)) == {second}


def test_a_missing_group_is_told(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="there is no group 'never-was'"):
        admin.group("never-was")
    outcome = admin.delete_groups(["never-was"])["never-was"]
    assert isinstance(outcome, BrokerError)
    assert outcome.code is ErrorCode.GROUP_ID_NOT_FOUND
