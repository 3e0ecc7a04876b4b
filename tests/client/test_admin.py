"""The admin client against a real broker: what it asks, changes, and how it names what went wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from client.conftest import NewTopicName
from compat.broker import unique_name
from compat.waiting import eventually
from ottla.client.admin import Admin
from ottla.client.admin_values import CreatedTopic, NewTopic, ReplicaSize
from ottla.client.conversation import Call, Conversation
from ottla.client.errors import (
    BrokerError,
    InvalidSetting,
    TopicExists,
    UnknownPartition,
    UnknownTopic,
)
from ottla.client.offset_spec import AtTime, End, FromEnd, Start
from ottla.model.config_types import ConfigSource
from ottla.model.errors import ErrorCode
from ottla.model.offsets import MAX_TIMESTAMP
from ottla.model.topics import NO_TOPIC_ID, TopicPartition


def test_the_cluster_has_its_brokers_and_a_controller(admin: Admin, bootstrap: str) -> None:
    cluster = admin.cluster()
    assert cluster.id
    assert cluster.controller_id in {broker.id for broker in cluster.brokers}
    assert bootstrap in {str(broker.address) for broker in cluster.brokers}


def test_a_broker_tells_the_versions_it_speaks(admin: Admin) -> None:
    (broker, *_) = admin.cluster().brokers
    versions = {each.name: each for each in admin.broker_versions(broker.id).apis}
    assert versions["Metadata"].key == 3
    assert versions["Fetch"].first <= 4 <= versions["Fetch"].last


def test_a_topic_is_created_described_and_deleted(admin: Admin) -> None:
    name = unique_name("life")
    created = admin.create_topic(
        name, partitions=3, replication_factor=1, configs={"retention.ms": "123456789"}
    )
    assert (created.name, created.partitions, created.replication_factor) == (name, 3, 1)
    topic = admin.topic(name)
    assert topic.id == created.id != NO_TOPIC_ID
    assert [partition.index for partition in topic.partitions] == [0, 1, 2]
    assert all(partition.leader in partition.isr for partition in topic.partitions)
    assert name in admin.topic_names()
    admin.delete_topic(name)
    assert eventually(lambda: name not in admin.topic_names())


def test_a_topic_is_only_validated_when_asked(admin: Admin) -> None:
    name = unique_name("validated")
    admin.create_topic(name, partitions=1, validate_only=True)
    assert name not in admin.topic_names()
    with pytest.raises(BrokerError):
        admin.create_topic("not/valid", validate_only=True)


def test_several_topics_have_an_outcome_each(admin: Admin, new_topic: NewTopicName) -> None:
    there, fresh = new_topic(), unique_name("fresh")
    outcomes = admin.create_topics([NewTopic(there, 1, 1), NewTopic(fresh, 1, 1)])
    assert isinstance(outcomes[there], TopicExists)
    assert isinstance(outcomes[fresh], CreatedTopic)
    gone = admin.delete_topics([fresh, "never-was"])
    assert gone[fresh] is None
    assert isinstance(gone["never-was"], UnknownTopic)


def test_replicas_can_be_placed(admin: Admin) -> None:
    name = unique_name("placed")
    (broker, *_) = admin.cluster().brokers
    admin.create_topic(name, assignment={0: [broker.id], 1: [broker.id]})
    assert [each.replicas for each in admin.topic(name).partitions] == [(broker.id,)] * 2


def test_an_unknown_topic_names_the_nearest(admin: Admin) -> None:
    name = unique_name("payments")
    admin.create_topic(name, partitions=1)
    wrong = name.replace("payments", "payment")
    for ask in (admin.topic, admin.topic_configs, admin.delete_topic, admin.partitions_of):
        with pytest.raises(UnknownTopic) as caught:
            ask(wrong)
        assert name in caught.value.nearest
        assert name in str(caught.value)
    with pytest.raises(UnknownTopic):
        admin.create_partitions(wrong, 3)
    with pytest.raises(UnknownTopic):
        admin.alter_topic_configs(wrong, set={"retention.ms": "1"})
    with pytest.raises(UnknownTopic):
        admin.latest_offsets([TopicPartition(wrong, 0)])


def test_an_unknown_partition_names_those_there_are(admin: Admin, new_topic: NewTopicName) -> None:
    with pytest.raises(UnknownPartition, match="0 to 1"):
        admin.latest_offsets([TopicPartition(new_topic(2), 2)])


def test_an_unknown_broker_names_those_there_are(admin: Admin) -> None:
    with pytest.raises(BrokerError, match=r"no broker 4711.*the brokers are"):
        admin.broker_configs(4711)


def test_partitions_grow_and_never_shrink(admin: Admin, new_topic: NewTopicName) -> None:
    name = new_topic(2)
    admin.create_partitions(name, 4, validate_only=True)
    assert len(admin.partitions_of(name)) == 2
    admin.create_partitions(name, 4)
    assert eventually(lambda: len(admin.partitions_of(name)) == 4)
    with pytest.raises(BrokerError) as caught:
        admin.create_partitions(name, 3)
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS


def test_topic_settings_are_set_appended_and_deleted(admin: Admin, new_topic: NewTopicName) -> None:
    name = new_topic()
    admin.alter_topic_configs(name, set={"retention.ms": "777"}, append={"cleanup.policy": "compact"})
    assert eventually(lambda: admin.topic_configs(name)["retention.ms"].value == "777")
    configs = admin.topic_configs(name)
    assert configs["retention.ms"].source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert configs["retention.ms"].type == "long"
    assert configs["retention.ms"].doc
    assert set((configs["cleanup.policy"].value or "").split(",")) == {"compact", "delete"}
    admin.alter_topic_configs(name, delete=["retention.ms"], subtract={"cleanup.policy": "delete"})
    assert eventually(lambda: admin.topic_configs(name)["retention.ms"].is_default)
    configs = admin.topic_configs(name, ["retention.ms", "cleanup.policy"])
    assert set(configs) == {"retention.ms", "cleanup.policy"}
    assert configs["cleanup.policy"].value == "compact"


def test_a_wrong_setting_changes_nothing(admin: Admin, new_topic: NewTopicName) -> None:
    name = new_topic()
    with pytest.raises(BrokerError) as caught:
        admin.alter_topic_configs(name, set={"retention.ms": "soon"})
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    admin.alter_topic_configs(name, set={"retention.ms": "5"}, validate_only=True)
    assert admin.topic_configs(name)["retention.ms"].is_default


def test_broker_settings_are_described(admin: Admin) -> None:
    (broker, *_) = admin.cluster().brokers
    configs = admin.broker_configs(broker.id, ["log.retention.ms", "num.io.threads"])
    assert configs["num.io.threads"].value
    assert isinstance(admin.broker_configs(None), dict)


def test_an_empty_partition_starts_and_ends_at_zero(admin: Admin, new_topic: NewTopicName) -> None:
    partitions = admin.partitions_of(new_topic(2))
    assert admin.earliest_offsets(partitions) == dict.fromkeys(partitions, 0)
    assert admin.latest_offsets(partitions) == dict.fromkeys(partitions, 0)
    for place in ("start", "end", "100", "-5", "@-1h"):
        assert admin.resolve_offsets(partitions, place) == dict.fromkeys(partitions, 0)
    found = admin.list_offsets({partitions[0]: MAX_TIMESTAMP, partitions[1]: AtTime(0)})
    assert {each.offset for each in found.values()} == {None}
    assert admin.list_offsets({partitions[0]: End()})[partitions[0]].offset == 0
    assert admin.list_offsets({partitions[0]: Start()})[partitions[0]].offset == 0
    with pytest.raises(ValueError, match="resolve_offsets"):
        admin.list_offsets({partitions[0]: FromEnd(1)})


def test_who_leads_is_not_asked_again_a_moment_later_unless_that_has_changed(
    admin: Admin, bootstrap: str, new_topic: NewTopicName, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    begin = Conversation._begin

    def noting(conversation: Conversation, call: Call) -> list[memoryview]:
        asked.append(call.api.name)
        return begin(conversation, call)

    grown, gone = new_topic(1), new_topic(1)
    targets = [TopicPartition(grown, 0), TopicPartition(gone, 0)]
    with Admin(bootstrap) as client:
        client.topics([grown, gone])
        with monkeypatch.context() as patched:
            patched.setattr(Conversation, "_begin", noting)
            assert client.latest_offsets(targets) == client.earliest_offsets(targets)
        assert set(asked) == {"ListOffsets"}
        admin.create_partitions(grown, 2)
        assert eventually(lambda: len(admin.partitions_of(grown)) == 2)
        assert client.latest_offsets([TopicPartition(grown, 1)]) == {TopicPartition(grown, 1): 0}
        client.topics([grown, gone])
        admin.delete_topic(gone)
        assert eventually(lambda: gone not in admin.topic_names())
        with pytest.raises(UnknownTopic):
            client.latest_offsets(targets)


def test_log_directories_tell_the_sizes_of_partitions(admin: Admin, new_topic: NewTopicName) -> None:
    name = new_topic(2)

    def sizes() -> list[ReplicaSize]:
        return [size for each in admin.log_dirs() for size in each.replicas if size.topic == name]

    assert eventually(lambda: sorted(size.partition for size in sizes()) == [0, 1])
    assert all(size.bytes == 0 and not size.is_future for size in sizes())


def test_a_group_has_a_coordinator(admin: Admin) -> None:
    assert admin.find_coordinator("some-group").id in {broker.id for broker in admin.cluster().brokers}


def test_settings_take_kafkas_names_in_both_spellings(bootstrap: str) -> None:
    with (
        Admin(bootstrap, **{"client.id": "a", "request.timeout.ms": "5000"}),
        Admin(bootstrap, client_id="b"),
    ):
        pass
    with pytest.raises(InvalidSetting, match=r"did you mean request\.timeout\.ms"):
        Admin(bootstrap, request_timeout_m=1)
    with pytest.raises(InvalidSetting, match="1 or more"):
        Admin(bootstrap, request_timeout_ms=0)
    with pytest.raises(InvalidSetting, match="SASL_SSL"):
        Admin(bootstrap, security_protocol="TLS")


def test_threads_share_an_admin_client(bootstrap: str, new_topic: NewTopicName) -> None:
    topic = new_topic(3)
    with Admin(bootstrap) as admin, ThreadPoolExecutor(4) as threads:
        found = threads.map(
            lambda _: (len(admin.topic(topic).partitions), topic in admin.topic_names()), range(40)
        )
        assert set(found) == {(3, True)}
