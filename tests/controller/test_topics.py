"""Topics are created, grown and deleted under Kafka's rules, each as a whole or not at all."""

from __future__ import annotations

import pytest

from controller.running import RunningController
from ottla.controller.changes import PartitionsAdded, TopicCreated, TopicDeleted
from ottla.controller.cluster import ClusterImage, PartitionImage
from ottla.controller.topics import PartitionsSpec, TopicSpec
from ottla.coordination.operations import Create
from ottla.model.configs import BrokerConfig
from ottla.model.errors import ErrorCode
from ottla.model.limits import PARTITIONS_PER_TOPIC_CREATE_MAX
from ottla.model.topics import NO_TOPIC_ID, TopicId, topic_id_text

pytestmark = pytest.mark.usefixtures("where")

THREE = {1: None, 2: None, 3: None}


@pytest.fixture
def running() -> RunningController:
    return RunningController(racks=dict(THREE))


def test_a_topic_is_there_with_all_its_nodes(running: RunningController) -> None:
    [result] = running.create(TopicSpec("t", 2, 3, configs=[("retention.ms", "1000")]))
    assert (result.name, result.code, result.text) == ("t", ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (2, 3)
    assert result.configs == {"retention.ms": "1000"}
    topic = running.controller.image.topics["t"]
    assert running.controller.image.topics_by_id[result.topic_id] is topic
    assert running.changes == [TopicCreated(topic)]
    replicas = [list(partition.replicas) for partition in topic.partitions]
    assert topic.partitions[0] == PartitionImage(
        replicas[0][0], 0, tuple(replicas[0]), tuple(replicas[0]), 0, 1
    )
    text = topic_id_text(result.topic_id)
    assert (
        running.data("/brokers/topics/t")
        == (
            f'{{"partitions":{{"0":{replicas[0]},"1":{replicas[1]}}},"topic_id":"{text}",'
            '"adding_replicas":{},"removing_replicas":{},"version":3}'
        )
        .replace(" ", "")
        .encode()
    )
    assert running.data("/config/topics/t") == b'{"version":1,"config":{"retention.ms":"1000"}}'
    leader, isr = replicas[1][0], ",".join(map(str, replicas[1]))
    state = f'{{"controller_epoch":1,"leader":{leader},"version":1,"leader_epoch":0,"isr":[{isr}]}}'
    assert running.data("/brokers/topics/t/partitions/1/state") == state.encode()
    assert ClusterImage.load(running.coordination) == running.controller.image


def test_what_is_left_open_comes_from_the_brokers_settings() -> None:
    config = BrokerConfig({"num.partitions": "4", "default.replication.factor": "2"})
    running = RunningController(config=config, racks=dict(THREE))
    [result] = running.create(TopicSpec("t"))
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_replicas_assigned_by_hand(running: RunningController) -> None:
    [result] = running.create(TopicSpec("t", assignments=[(1, [3, 1]), (0, [2, 3])]))
    assert result.code is ErrorCode.NONE
    partitions = running.controller.image.topics["t"].partitions
    assert [partition.replicas for partition in partitions] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in partitions] == [2, 3]


@pytest.mark.parametrize(
    ("spec", "code", "text"),
    [
        (TopicSpec(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "must not be empty"),
        (TopicSpec("."), ErrorCode.INVALID_TOPIC_EXCEPTION, "must not be named"),
        (TopicSpec("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "may only use"),
        (TopicSpec("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "at most 249 characters"),
        (TopicSpec("old.topic"), ErrorCode.INVALID_TOPIC_EXCEPTION, "collides with topic 'old_topic'"),
        (TopicSpec("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "reserved"),
        (TopicSpec("old_topic"), ErrorCode.TOPIC_ALREADY_EXISTS, "already exists"),
        (TopicSpec("t", 0), ErrorCode.INVALID_PARTITIONS, "0 partitions"),
        (TopicSpec("t", -2), ErrorCode.INVALID_PARTITIONS, "-2 partitions"),
        (TopicSpec("t", PARTITIONS_PER_TOPIC_CREATE_MAX + 1), ErrorCode.INVALID_PARTITIONS, "at most 20000"),
        (TopicSpec("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, "expected 1 or more"),
        (TopicSpec("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, "expected 1 or more"),
        (TopicSpec("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, "number of brokers, 3"),
        (TopicSpec("t", 1, assignments=[(0, [1])]), ErrorCode.INVALID_REQUEST, "must then be -1"),
        (TopicSpec("t", -1, 1, [(0, [1])]), ErrorCode.INVALID_REQUEST, "must then be -1"),
        (TopicSpec("t", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replica"),
        (TopicSpec("t", assignments=[(0, [1, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "named twice"),
        (
            TopicSpec("t", assignments=[(0, [9])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "no broker has the id 9",
        ),
        (
            TopicSpec("t", assignments=[(0, [1]), (0, [2])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "more than once",
        ),
        (
            TopicSpec("t", assignments=[(0, [1]), (2, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "without a gap",
        ),
        (
            TopicSpec("t", assignments=[(-1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "without a gap",
        ),
        (
            TopicSpec("t", assignments=[(0, [1, 2]), (1, [1])]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions before it have 2",
        ),
        (
            TopicSpec("t", configs=[("retention.ms", None)]),
            ErrorCode.INVALID_CONFIG,
            "no value is given for retention.ms",
        ),
        (TopicSpec("t", configs=[("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG, "retention.ms=soon"),
        (TopicSpec("t", configs=[("retetion.ms", "1")]), ErrorCode.INVALID_CONFIG, "mean retention.ms"),
    ],
    ids=str,
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_what_is_not_allowed_is_refused_with_a_reason(
    running: RunningController, spec: TopicSpec, code: ErrorCode, text: str, validate_only: bool
) -> None:
    running.create(TopicSpec("old_topic"))
    [result] = running.create(spec, validate_only=validate_only)
    assert result.code is code
    assert text in (result.text or "")
    assert (result.topic_id, result.num_partitions, result.replication_factor) == (NO_TOPIC_ID, -1, -1)
    assert list(running.controller.image.topics) == ["old_topic"]
    assert ClusterImage.load(running.coordination) == running.controller.image


def test_validating_creates_nothing(running: RunningController) -> None:
    before = running.files.operations
    [result] = running.create(TopicSpec("t", 3), validate_only=True)
    assert (result.code, result.num_partitions, result.topic_id) == (ErrorCode.NONE, 3, NO_TOPIC_ID)
    assert running.controller.image.topics == {}
    assert running.changes == []
    assert running.files.operations == before
    # What was only validated must not stand in the way of a name that collides with it.
    assert running.create(TopicSpec("a.b"), validate_only=True)[0].code is ErrorCode.NONE
    assert running.create(TopicSpec("a_b"))[0].code is ErrorCode.NONE


def test_one_topic_of_a_request_fails_alone(running: RunningController) -> None:
    results = running.create(TopicSpec("a"), TopicSpec("b", 0), TopicSpec("c"))
    assert [result.code for result in results] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.NONE,
    ]
    assert [result.name for result in results] == ["a", "b", "c"]


def test_a_topic_named_twice_in_a_request_is_refused(running: RunningController) -> None:
    results = running.create(TopicSpec("a"), TopicSpec("b"), TopicSpec("a", 3))
    assert [result.code for result in results] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]


def test_names_on_their_way_collide_too(running: RunningController) -> None:
    results = running.create(TopicSpec("a.b"), TopicSpec("a_b"))
    assert [result.code for result in results] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_topic_created_twice_before_the_disk_answers_exists_once(running: RunningController) -> None:
    codes: list[ErrorCode] = []
    for _ in range(2):
        running.controller.create_topics(
            [TopicSpec("t")], False, lambda results: codes.append(results[0].code)
        )
    assert codes == []
    running.coordination.sync()
    assert codes == [ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS]
    assert ClusterImage.load(running.coordination) == running.controller.image


def test_settings_that_lie_around_without_a_topic_are_replaced(running: RunningController) -> None:
    running.coordination.submit(
        Create("/config/topics/t", b'{"version":1,"config":{"x":"y"}}'), lambda _: None
    )
    assert running.create(TopicSpec("t"))[0].code is ErrorCode.NONE
    assert running.data("/config/topics/t") == b'{"version":1,"config":{}}'
    assert ClusterImage.load(running.coordination) == running.controller.image


class TestGrowing:
    def test_new_partitions_follow_the_old_ones(self, running: RunningController) -> None:
        running.create(TopicSpec("t", 2, 2))
        before = list(running.controller.image.topics["t"].partitions)
        [result] = running.grow(PartitionsSpec("t", 5))
        assert (result.code, result.num_partitions) == (ErrorCode.NONE, 5)
        topic = running.controller.image.topics["t"]
        assert topic.partitions[:2] == before
        assert {len(partition.replicas) for partition in topic.partitions} == {2}
        assert running.changes[-1] == PartitionsAdded(topic, 2)
        assert ClusterImage.load(running.coordination) == running.controller.image

    def test_assigned_by_hand(self, running: RunningController) -> None:
        running.create(TopicSpec("t", 1, 2))
        [result] = running.grow(PartitionsSpec("t", 3, [[2, 3], [3, 1]]))
        assert result.code is ErrorCode.NONE
        replicas = [partition.replicas for partition in running.controller.image.topics["t"].partitions]
        assert replicas[1:] == [(2, 3), (3, 1)]

    @pytest.mark.parametrize(
        ("spec", "code", "text"),
        [
            (PartitionsSpec("x", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic 'x'"),
            (PartitionsSpec("t", 2), ErrorCode.INVALID_PARTITIONS, "2 would not be an increase"),
            (PartitionsSpec("t", 1), ErrorCode.INVALID_PARTITIONS, "1 would not be an increase"),
            (PartitionsSpec("t", -1), ErrorCode.INVALID_PARTITIONS, "not be an increase"),
            (PartitionsSpec("t", 30_000), ErrorCode.INVALID_PARTITIONS, "at most 20000"),
            (PartitionsSpec("t", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "1 partitions are added"),
            (PartitionsSpec("t", 3, [[1], [2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "2 are assigned"),
            (PartitionsSpec("t", 3, [[]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replica"),
            (PartitionsSpec("t", 3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "before it have 2"),
            (PartitionsSpec("t", 3, [[1, 9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the id 9"),
            (PartitionsSpec("t", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "named twice"),
        ],
        ids=str,
    )
    def test_what_is_not_allowed_is_refused(
        self, running: RunningController, spec: PartitionsSpec, code: ErrorCode, text: str
    ) -> None:
        running.create(TopicSpec("t", 2, 2))
        [result] = running.grow(spec)
        assert result.code is code
        assert text in (result.text or "")
        assert ClusterImage.load(running.coordination) == running.controller.image

    def test_a_topic_that_is_being_reassigned_does_not_grow(self, running: RunningController) -> None:
        running.create(TopicSpec("t"))
        topic = running.controller.image.topics["t"]
        topic.partitions[0] = PartitionImage(1, 0, (1, 2), (1,), 0, 1, adding_replicas=(2,))
        assert running.grow(PartitionsSpec("t", 2))[0].code is ErrorCode.REASSIGNMENT_IN_PROGRESS

    def test_validating_and_naming_twice(self, running: RunningController) -> None:
        running.create(TopicSpec("t"))
        assert running.grow(PartitionsSpec("t", 2), validate_only=True)[0].code is ErrorCode.NONE
        assert len(running.controller.image.topics["t"].partitions) == 1
        results = running.grow(PartitionsSpec("t", 2), PartitionsSpec("t", 3))
        assert [result.code for result in results] == [ErrorCode.INVALID_REQUEST] * 2

    def test_two_growths_before_the_disk_answers_both_hold(self, running: RunningController) -> None:
        running.create(TopicSpec("t"))
        codes: list[ErrorCode] = []
        for count in (3, 5, 4):
            running.controller.create_partitions(
                [PartitionsSpec("t", count)], False, lambda results: codes.append(results[0].code)
            )
        running.coordination.sync()
        assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS]
        assert len(running.controller.image.topics["t"].partitions) == 5
        assert ClusterImage.load(running.coordination) == running.controller.image


class TestDeleting:
    def test_every_node_goes_and_the_name_is_free(self, running: RunningController) -> None:
        paths = running.paths()
        [created] = running.create(TopicSpec("a.b", 3))
        topic = running.controller.image.topics["a.b"]
        [result] = running.delete("a.b")
        assert (result.name, result.topic_id, result.code) == ("a.b", created.topic_id, ErrorCode.NONE)
        assert running.paths() == paths
        assert running.changes[-1] == TopicDeleted(topic)
        assert running.create(TopicSpec("a_b"))[0].code is ErrorCode.NONE
        [again] = running.create(TopicSpec("c"))
        assert again.topic_id != created.topic_id
        assert ClusterImage.load(running.coordination) == running.controller.image

    def test_by_id(self, running: RunningController) -> None:
        [created] = running.create(TopicSpec("t"))
        [result] = running.delete(created.topic_id)
        assert (result.name, result.code) == ("t", ErrorCode.NONE)
        [result] = running.delete(created.topic_id)
        assert (result.name, result.topic_id, result.code) == (
            None,
            created.topic_id,
            ErrorCode.UNKNOWN_TOPIC_ID,
        )

    def test_unknown_and_named_twice(self, running: RunningController) -> None:
        [created] = running.create(TopicSpec("t"))
        results = running.delete("x", "t", created.topic_id, TopicId(bytes(15) + b"x"))
        assert [result.code for result in results] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.UNKNOWN_TOPIC_ID,
        ]
        assert "t" in running.controller.image.topics

    def test_when_deletion_is_switched_off(self) -> None:
        running = RunningController(config=BrokerConfig({"delete.topic.enable": "false"}))
        running.create(TopicSpec("t"))
        assert running.delete("t")[0].code is ErrorCode.TOPIC_DELETION_DISABLED

    def test_twice_before_the_disk_answers(self, running: RunningController) -> None:
        running.create(TopicSpec("t", 2))
        codes: list[ErrorCode] = []
        for _ in range(2):
            running.controller.delete_topics(["t"], lambda results: codes.append(results[0].code))
        running.coordination.sync()
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    def test_growing_and_deleting_before_the_disk_answers(self, running: RunningController) -> None:
        running.create(TopicSpec("t", 2))
        codes: list[ErrorCode] = []
        running.controller.create_partitions(
            [PartitionsSpec("t", 4)], False, lambda results: codes.append(results[0].code)
        )
        running.controller.delete_topics(["t"], lambda results: codes.append(results[0].code))
        running.coordination.sync()
        assert codes == [ErrorCode.NONE, ErrorCode.NONE]
        assert running.controller.image.topics == {}
        assert ClusterImage.load(running.coordination) == running.controller.image


def test_a_topic_too_large_for_the_coordination_is_refused_whole() -> None:
    running = RunningController()
    limit = running.coordination.multi_bytes_max
    [created] = running.create(TopicSpec("t", 2_000, 1))
    assert created.code is ErrorCode.NONE
    [large] = running.create(TopicSpec("large", 20_000, 1))
    [grown] = running.grow(PartitionsSpec("t", 4_000))
    [grown] = running.grow(PartitionsSpec("t", 6_500))
    for result in (large, grown):
        assert result.code is (ErrorCode.NONE if limit is None else ErrorCode.INVALID_REQUEST)
        assert limit is None or f"takes {limit:,} at once" in (result.text or "")
    [deleted] = running.delete("t")
    assert deleted.code is ErrorCode.NONE
