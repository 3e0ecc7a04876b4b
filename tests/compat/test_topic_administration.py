"""Topics are created, described, grown and deleted by stock admin clients, and mistakes get Kafka's codes."""

from __future__ import annotations

import time

import pytest

from compat.admins.admin import FROM_TOPIC, Admin, refusal_of
from compat.admins.kafka_python import KafkaPythonAdmin
from compat.broker import unique_name
from compat.waiting import eventually
from ottla.model.errors import ErrorCode

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_created_topic_has_its_partitions_configs_and_an_id(admin: Admin) -> None:
    topic = unique_name("created")
    admin.create_topic(
        topic, 3, {"retention.ms": "123456", "cleanup.policy": "compact"}, replication_factor=1
    )
    assert eventually(lambda: topic in admin.topics())
    view = admin.describe_topic(topic)
    [broker] = admin.cluster().brokers
    assert view.replicas == {0: [broker], 1: [broker], 2: [broker]}
    assert view.leaders == {0: broker, 1: broker, 2: broker}
    assert len(view.topic_id) >= 22
    configs = admin.topic_configs(topic)
    assert {name for name, config in configs.items() if config.source == FROM_TOPIC} == {
        "retention.ms",
        "cleanup.policy",
    }
    assert configs["retention.ms"].value == "123456"
    assert configs["cleanup.policy"].value == "compact"


def test_partitions_and_replicas_left_open_take_the_brokers_defaults(admin: Admin) -> None:
    topic = unique_name("defaults")
    admin.create_topic(topic)
    assert eventually(lambda: topic in admin.topics())
    assert [len(replicas) for replicas in admin.describe_topic(topic).replicas.values()] == [1]


def test_replicas_may_be_placed_by_hand(admin: Admin) -> None:
    topic = unique_name("placed")
    [broker] = admin.cluster().brokers
    admin.create_topic(topic, assignment=[[broker], [broker]])
    assert eventually(lambda: topic in admin.topics())
    assert admin.describe_topic(topic).replicas == {0: [broker], 1: [broker]}
    unknown = unique_name("misplaced")
    assert (
        refusal_of(lambda: admin.create_topic(unknown, assignment=[[broker + 77]]))
        == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )


def test_existing_topic_is_not_created_again(admin: Admin) -> None:
    topic = unique_name("twice")
    admin.create_topic(topic, 2)
    assert refusal_of(lambda: admin.create_topic(topic, 5)) == ErrorCode.TOPIC_ALREADY_EXISTS
    assert (
        refusal_of(lambda: admin.create_topic(topic, 5, validate_only=True)) == ErrorCode.TOPIC_ALREADY_EXISTS
    )
    assert eventually(lambda: topic in admin.topics())
    assert len(admin.describe_topic(topic).replicas) == 2


@pytest.mark.parametrize("name", ["with/slash", "with space", "..", ".", "n" * 250, "ünicode"])
def test_bad_names_are_refused(admin: Admin, name: str) -> None:
    assert refusal_of(lambda: admin.create_topic(name, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_longest_name_is_accepted(admin: Admin) -> None:
    topic = unique_name("n" * 300)[-249:]
    admin.create_topic(topic, 1)
    assert eventually(lambda: topic in admin.topics())


def test_names_that_differ_in_dot_and_underscore_only_collide(admin: Admin) -> None:
    name = unique_name("dot").replace("-", ".")
    admin.create_topic(name, 1)
    colliding = name.replace(".", "_")
    assert refusal_of(lambda: admin.create_topic(colliding, 1)) == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"replication_factor": 9}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"configs": {"no.such.setting": "1"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"max.message.bytes": "many"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"segment.bytes": "-5"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"cleanup.policy": "burn"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"message.timestamp.type": "Sometimes"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"compression.type": "rar"}}, ErrorCode.INVALID_CONFIG),
        ({"configs": {"min.insync.replicas": "0"}}, ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda thing: str(thing) if isinstance(thing, dict) else None,
)
def test_topic_with_wrong_settings_is_refused_and_not_created(
    admin: Admin, wrong: dict[str, object], code: ErrorCode
) -> None:
    topic = unique_name("wrong")
    assert refusal_of(lambda: admin.create_topic(topic, validate_only=True, **wrong)) == code  # type: ignore[arg-type]
    assert refusal_of(lambda: admin.create_topic(topic, **wrong)) == code  # type: ignore[arg-type]
    assert topic not in admin.topics()


def test_validate_only_creates_nothing(admin: Admin) -> None:
    topic = unique_name("validated")
    admin.create_topic(topic, 3, {"retention.ms": "1000"}, validate_only=True)
    time.sleep(0.3)
    assert topic not in admin.topics()
    admin.create_topic(topic, 3)


def test_partitions_are_added_and_never_taken_away(admin: Admin) -> None:
    topic = unique_name("grown")
    admin.create_topic(topic, 2)
    admin.grow_topic(topic, 5, validate_only=True)
    assert eventually(lambda: topic in admin.topics())
    assert len(admin.describe_topic(topic).replicas) == 2
    admin.grow_topic(topic, 5)
    assert eventually(lambda: len(admin.describe_topic(topic).replicas) == 5)
    assert refusal_of(lambda: admin.grow_topic(topic, 5)) == ErrorCode.INVALID_PARTITIONS
    assert refusal_of(lambda: admin.grow_topic(topic, 4)) == ErrorCode.INVALID_PARTITIONS
    assert refusal_of(lambda: admin.grow_topic(unique_name("nowhere"), 4)) == _UNKNOWN


def test_deleted_topic_is_gone(admin: Admin) -> None:
    topic = unique_name("deleted")
    admin.create_topic(topic, 2)
    assert eventually(lambda: topic in admin.topics())
    admin.delete_topic(topic)
    assert eventually(lambda: topic not in admin.topics())
    assert refusal_of(lambda: admin.delete_topic(topic)) == _UNKNOWN
    assert refusal_of(lambda: admin.describe_topic(topic)) == _UNKNOWN


def test_name_of_a_deleted_topic_gets_a_new_id(admin: Admin) -> None:
    topic = unique_name("again")
    admin.create_topic(topic, 3)
    assert eventually(lambda: topic in admin.topics())
    first = admin.describe_topic(topic).topic_id
    admin.delete_topic(topic)
    admin.create_topic(topic, 1)
    assert eventually(lambda: topic in admin.topics() and len(admin.describe_topic(topic).replicas) == 1)
    assert admin.describe_topic(topic).topic_id != first


def test_cluster_names_its_brokers_and_controller(admin: Admin, bootstrap: str) -> None:
    cluster = admin.cluster()
    assert cluster.cluster_id
    assert cluster.controller in cluster.brokers
    assert bootstrap in cluster.brokers.values()


def test_topic_partitions_are_described_page_by_page(python_admin: KafkaPythonAdmin) -> None:
    topic = unique_name("paged")
    python_admin.create_topic(topic, 5)
    assert eventually(lambda: topic in python_admin.topics())
    indexes: list[int] = []
    cursor = None
    for _ in range(3):
        page = python_admin.describe_by_partition(topic, 2, cursor)
        [found] = page["topics"]
        assert found["error_code"] == 0
        indexes += [partition["partition_index"] for partition in found["partitions"]]
        cursor = page["next_cursor"]
    assert indexes == [0, 1, 2, 3, 4]
    assert cursor is None
