"""The admin client has a call for every admin API of the broker, and each of them reaches the wire."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator

import pytest

from client.wired import WiredBroker, wired_broker
from ottla.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.admin_calls import AdminCalls
from ottla.client.offset_spec import Start

PLACE = TopicPartition("t", 0)

NOT_FOR_ADMINS = {
    "Produce": "Producer.send",
    "Fetch": "Consumer.poll",
    "JoinGroup": "Consumer.subscribe",
    "SyncGroup": "Consumer.subscribe",
    "Heartbeat": "Consumer.subscribe",
    "ConsumerGroupHeartbeat": "Consumer.subscribe, group.protocol=consumer",
    "AddPartitionsToTxn": "Producer.send in a transaction",
    "AddOffsetsToTxn": "Producer.send_offsets_to_transaction",
    "TxnOffsetCommit": "Producer.send_offsets_to_transaction",
}
"""And which call of another client sends it."""

CALLS: dict[str, Callable[[Admin], object]] = {
    "Metadata": lambda admin: admin.topics(),
    "ApiVersions": lambda admin: admin.broker_versions(),
    "DescribeCluster": lambda admin: admin.cluster(),
    "DescribeTopicPartitions": lambda admin: admin.topic_pages(["t"]),
    "FindCoordinator": lambda admin: admin.find_coordinator("g"),
    "CreateTopics": lambda admin: admin.create_topics([NewTopic("new", 1)], validate_only=True),
    "DeleteTopics": lambda admin: admin.delete_topics(["no-such-topic"]),
    "CreatePartitions": lambda admin: admin.create_partitions("t", 5, validate_only=True),
    "DescribeConfigs": lambda admin: admin.topic_configs("t"),
    "AlterConfigs": lambda admin: admin.replace_topic_configs("t", {"retention.ms": "7"}, validate_only=True),
    "IncrementalAlterConfigs": lambda admin: admin.alter_topic_configs("t", set={"retention.ms": "86400000"}),
    "ListConfigResources": lambda admin: admin.config_resources(),
    "DescribeLogDirs": lambda admin: admin.log_dirs(),
    "ListOffsets": lambda admin: admin.list_offsets({PLACE: Start()}),
    "OffsetForLeaderEpoch": lambda admin: admin.leader_epoch_ends({PLACE: 0}),
    "DeleteRecords": lambda admin: admin.delete_records({PLACE: 1}),
    "ListGroups": lambda admin: admin.groups(),
    "DescribeGroups": lambda admin: admin.group("g"),
    "ConsumerGroupDescribe": lambda admin: admin.group("new-g"),
    "OffsetFetch": lambda admin: admin.group_offsets("g"),
    "OffsetCommit": lambda admin: admin.alter_group_offsets("other", {PLACE: 1}),
    "OffsetDelete": lambda admin: admin.delete_group_offsets("other", [PLACE]),
    "DeleteGroups": lambda admin: admin.delete_groups(["other"]),
    "LeaveGroup": lambda admin: admin.remove_group_members("g"),
    "ListTransactions": lambda admin: admin.transactions(),
    "DescribeTransactions": lambda admin: admin.transaction("x"),
    "DescribeProducers": lambda admin: admin.open_transactions([PLACE]),
    "EndTxn": lambda admin: admin.end_transactions(_opened(), commit=True),
    "InitProducerId": lambda admin: admin.fence_producer("x"),
    "WriteTxnMarkers": lambda admin: [
        admin.abort_open_transaction(each) for each in admin.open_transactions([PLACE])
    ],
}

_state: dict[str, object] = {}


def _opened() -> list[object]:
    with Producer(str(_state["bootstrap"]), transactional_id="detached") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"", partition=1)
        return [producer.detach_transaction()]


@pytest.fixture(scope="module")
def wired() -> Iterator[WiredBroker]:
    """A topic, groups of both protocols with a member each, and a transaction that is open."""
    with wired_broker() as broker:
        _state["bootstrap"] = broker.bootstrap
        broker.create_topic("t", partitions=2)
        hanging = Producer(broker.bootstrap, transactional_id="x")
        hanging.init_transactions()
        hanging.begin_transaction()
        hanging.send("t", b"open", partition=0).result(30)
        with (
            Consumer(broker.bootstrap, group_id="g") as old,
            Consumer(broker.bootstrap, group_id="new-g", group_protocol="consumer") as new,
        ):
            deadline = time.monotonic() + 60
            for each in (old, new):
                each.subscribe(["t"])
                while not each.assignment():
                    each.poll(0.1)
                    assert time.monotonic() < deadline
            yield broker
        hanging.close(0)


def test_no_admin_api_of_the_broker_lacks_a_call(wired: WiredBroker) -> None:
    with Admin(wired.bootstrap) as admin:
        offered = {api.name for api in admin.broker_versions().apis}
    missing = offered - CALLS.keys() - NOT_FOR_ADMINS.keys()
    assert not missing, "give Admin a call for it (and name it here), or say which client sends it"


@pytest.mark.parametrize("api", sorted(CALLS, key=lambda name: name == "InitProducerId"))
def test_each_call_reaches_its_api(wired: WiredBroker, api: str) -> None:
    with Admin(wired.bootstrap) as admin:
        before = wired.wire.seen[api]
        CALLS[api](admin)
    assert wired.wire.seen[api] > before


def test_every_call_is_on_both_shells() -> None:
    calls = {
        name for name, _ in inspect.getmembers(AdminCalls, inspect.iscoroutinefunction) if name[0] != "_"
    }
    assert calls == {name for name in vars(Admin) if name[0] != "_"} - {"close"}


def test_pages_settings_epochs_and_members(wired: WiredBroker) -> None:
    with Admin(wired.bootstrap) as admin:
        wired.create_topic("many", partitions=7)
        (topic,) = admin.topic_pages(["many"], page_partitions=3)
        assert topic == admin.topic("many")
        admin.alter_topic_configs("many", set={"retention.ms": "1000", "max.message.bytes": "5000"})
        admin.replace_topic_configs("many", {"retention.ms": "2000"})
        configs = admin.topic_configs("many")
        assert configs["retention.ms"].value == "2000"
        assert configs["max.message.bytes"].value != "5000"
        with Producer(wired.bootstrap) as producer:
            producer.send("many", b"", partition=0)
        place = TopicPartition("many", 0)
        assert admin.leader_epoch_ends({place: 0}) == {place: 1}
        settings = {"group.id": "static", "group.instance.id": "one"}
        with Consumer(wired.bootstrap, strategy=(), **settings) as consumer:
            consumer.subscribe(["many"])
            while not consumer.assignment():
                consumer.poll(0.1)
        assert [each.instance_id for each in admin.group("static").members] == ["one"]
        admin.remove_group_members("static", ["two"])
        assert admin.group("static").members
        admin.remove_group_members("static", ["one"])
        assert admin.group("static").members == ()
