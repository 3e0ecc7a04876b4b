"""A group that changes its protocol leaves the same records in Apache Kafka and here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.broker import unique_name
from compat.groups.story import SETTINGS
from compat.waiting import eventually
from interop.apache_kafka import apache_kafka
from ottla.client import Admin
from ottla.coordinator.consumer_records import (
    ConsumerGroupValue,
    MemberAssignmentValue,
    MemberTargetValue,
    MemberValue,
    TargetValue,
)
from ottla.coordinator.group_records import GroupMetadataValue, OffsetRecord, read_record
from ottla.coordinator.known_topics import KnownTopic, metadata_hash
from ottla.coordinator.state_log import StateRecord, partition_for
from ottla.model.topics import OFFSETS_TOPIC
from ottla.testing import BrokerProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

PARTITIONS = 6
_WITHIN_S = 60


@pytest.fixture(scope="module", params=["ottla", "apache kafka"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    settings = {**SETTINGS, "offsets.topic.num.partitions": "5"}
    if request.param == "ottla":
        with BrokerProcess(settings=settings) as broker:
            yield broker.bootstrap
        return
    settings["group.consumer.min.session.timeout.ms"] = "3000"
    settings["group.consumer.min.heartbeat.interval.ms"] = "300"
    with apache_kafka(tmp_path_factory.mktemp("kafka"), settings) as address:
        yield address


class Group:
    """Two consumers of one group, and what the coordinator has written of it."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.id, self.topic = unique_name("group"), unique_name("topic")
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result(30)

    def consumer(self, **settings: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.id,
                "client.id": "classic" if settings.get("group.protocol") != "consumer" else "new",
                **settings,
            }
        )
        consumer.subscribe([self.topic])
        return consumer

    def settle(self, *consumers: Consumer) -> None:
        share = PARTITIONS // len(consumers)

        def is_shared() -> bool:
            for consumer in consumers:
                consumer.poll(0.1)
            return all(len(consumer.assignment()) == share for consumer in consumers)

        assert eventually(is_shared, _WITHIN_S)

    def records(self) -> dict[str, Any]:
        """The last values by kind of record and client; None where a tombstone is the last."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": unique_name("reader")})
        partition = TopicPartition(OFFSETS_TOPIC, partition_for(self.id, 5), OFFSET_BEGINNING)
        consumer.assign([partition])
        end = consumer.get_watermark_offsets(partition, timeout=30)[1]
        found: dict[tuple[str, str], Any] = {}
        clients: dict[str, str] = {}
        offset = -1
        while offset < end - 1:
            message = consumer.poll(5)
            if message is None or message.error():
                break
            offset = message.offset() or 0
            read = read_record(StateRecord(message.key() or b"", message.value()))  # type: ignore[arg-type]
            if read is None or isinstance(read, OffsetRecord) or read.key.group != self.id:
                continue
            member_id = getattr(read.key, "member_id", "")
            if isinstance(read.value, MemberValue):
                clients[member_id] = read.value.client_id
            found[type(read.key).__name__.removesuffix("Key"), member_id] = read.value
        consumer.close()
        return {
            f"{kind} {clients.get(member_id, '')}".strip(): value
            for (kind, member_id), value in found.items()
        }

    def hash(self) -> int:
        with Admin(self.bootstrap) as admin:
            (topic,) = admin.topics([self.topic])
            return metadata_hash({self.topic: KnownTopic(topic.id, PARTITIONS)})


def test_a_mixed_group_and_its_end_are_written_alike(bootstrap: str) -> None:
    group = Group(bootstrap)
    classic = group.consumer(**{"partition.assignment.strategy": "range", "session.timeout.ms": "6000"})
    group.settle(classic)
    new = group.consumer(**{"group.protocol": "consumer"})
    group.settle(classic, new)
    _check_mixed(group, group.records())
    new.close()
    group.settle(classic)
    _check_classic(group.records())
    classic.close()


def _check_mixed(group: Group, records: dict[str, Any]) -> None:
    assert records["GroupMetadata"] is None
    assert records["ConsumerGroup"] == ConsumerGroupValue(2, group.hash())
    assert records["Target"] == TargetValue(2)
    for client in ("classic", "new"):
        member = records[f"Member {client}"]
        assert isinstance(member, MemberValue)
        assert (list(member.subscribed_topic_names), member.subscribed_topic_regex or None) == (
            [group.topic],
            None,
        )
        assigned, target = records[f"MemberAssignment {client}"], records[f"MemberTarget {client}"]
        assert isinstance(assigned, MemberAssignmentValue)
        assert isinstance(target, MemberTargetValue)
        assert _partitions(assigned.assigned_partitions) == _partitions(target.topic_partitions)
        assert (assigned.member_epoch, assigned.state, list(assigned.partitions_pending_revocation)) == (
            2,
            0,
            [],
        )
    terms = records["Member classic"].classic_member_metadata
    assert terms.session_timeout_ms == 6000
    assert [each.name for each in terms.supported_protocols] == ["range"]
    assert records["Member new"].classic_member_metadata is None


def _partitions(topics: Any) -> list[int]:
    return sorted(partition for topic in topics for partition in topic.partitions)


def _check_classic(records: dict[str, Any]) -> None:
    value = records.pop("GroupMetadata")
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.protocol, value.generation) == ("consumer", "range", 3)
    assert [member.client_id for member in value.members] == ["classic"]
    assert {kind: value for kind, value in records.items() if value is not None} == {}
    kinds = ("Member", "MemberTarget", "MemberAssignment")
    assert set(records) == {
        "ConsumerGroup",
        "Target",
        *(f"{kind} {client}" for kind in kinds for client in ("classic", "new")),
    }
