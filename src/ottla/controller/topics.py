"""Creating, growing and deleting topics: Kafka's rules, decided from the image. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from ottla.controller.changes import PartitionsAdded, TopicCreated, TopicDeleted
from ottla.controller.cluster import NO_ZNODE, ClusterImage, PartitionImage, TopicImage
from ottla.controller.placement import place
from ottla.controller.znode_formats import (
    Assignment,
    PartitionState,
    encode_assignment,
    encode_config,
    encode_state,
    partition_path,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from ottla.coordination.operations import Create, Delete, SetData, Step, StepResult
from ottla.model.configs import BrokerConfig, InvalidSetting
from ottla.model.errors import ErrorCode, Refused
from ottla.model.limits import PARTITIONS_PER_TOPIC_CREATE_MAX
from ottla.model.topics import NO_TOPIC_ID, TopicId, new_topic_id, topic_name_problem
from ottla.model.values import NamedTuple, dataclass, replace

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""Kafka's name for the log of its own quorum; clients and tools treat a topic of that name specially."""

DEFAULT = -1
"""Partitions or replication factor that the request leaves to the broker's settings."""


class TopicSpec(NamedTuple):
    """A topic as a request asks for it, not yet checked."""

    name: str
    num_partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()  # (partition, brokers): placed by hand
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(slots=True, frozen=True)
class PartitionsSpec:
    """A topic that is to grow."""

    name: str
    count: int  # partitions afterwards
    assignments: Sequence[Sequence[int]] | None = None  # brokers of each new partition


class TopicResult(NamedTuple):
    """What became of one topic of a request."""

    name: str | None
    topic_id: TopicId = NO_TOPIC_ID
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = MappingProxyType({})  # set for this topic

    @classmethod
    def of(cls, topic: TopicImage) -> TopicResult:
        return cls(
            topic.name,
            topic.id,
            num_partitions=len(topic.partitions),
            replication_factor=topic.replication_factor,
            configs=topic.configs,
        )

    def without_id(self) -> TopicResult:
        """For a topic that was only validated: it has no id."""
        return self._replace(topic_id=NO_TOPIC_ID)

    @classmethod
    def refused(cls, name: str | None, refusal: Refused, topic_id: TopicId = NO_TOPIC_ID) -> TopicResult:
        return cls(name, topic_id, refusal.code, refusal.text)


class CreateTopicPlan:
    """All nodes of a topic in one multi: after a power cut it is there as a whole, or not at all."""

    def __init__(self, topic: TopicImage, replaces_configs: bool) -> None:
        self.topic = topic
        configs = encode_config(topic.configs)
        config_path = topic_config_path(topic.name)
        self.steps: list[Step] = [
            SetData(config_path, configs) if replaces_configs else Create(config_path, configs),
            Create(topic_path(topic.name), _encode_assignment(topic.id, topic.partitions)),
            Create(partitions_path(topic.name), None),
        ]
        self.steps += _partition_steps(topic.name, topic.partitions, 0)

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> TopicCreated:
        self.topic.config_version = _version(answers[0])
        image.add_topic(self.topic)
        return TopicCreated(self.topic)


def decide_create(
    image: ClusterImage,
    spec: TopicSpec,
    config: BrokerConfig,
    random: Random,
    *,
    creating: str | None,
    has_configs: bool,
) -> CreateTopicPlan:
    """The plan of a new topic, or Refused.

    `creating` is a topic on its way whose name differs from this one only in '.' against '_'; `has_configs`
    tells that settings of this name lie around without a topic.
    """
    _check_name(image, spec.name, creating)
    configs = _checked_configs(spec, config)
    replicas = _manual(image, spec) if spec.assignments else _automatic(image, spec, config, random)
    partitions = [_new_partition(brokers, image.controller_epoch) for brokers in replicas]
    topic = TopicImage(spec.name, new_topic_id(), partitions, configs, 0, 0)
    return CreateTopicPlan(topic, has_configs)


def _check_name(image: ClusterImage, name: str, creating: str | None) -> None:
    if name == CLUSTER_METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} is reserved for the cluster itself")
    if (problem := topic_name_problem(name)) is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name in image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
    if (other := image.colliding_topic(name) or creating) is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic '{name}' collides with topic '{other}': names that differ only in '.' and '_' would "
            "share their metrics; choose another name",
        )


def _checked_configs(spec: TopicSpec, config: BrokerConfig) -> dict[str, str]:
    unset = [name for name, text in spec.configs if text is None]
    if unset:
        raise Refused(ErrorCode.INVALID_CONFIG, f"no value is given for {', '.join(unset)}")
    configs = {name: text for name, text in spec.configs if text is not None}
    try:
        config.topic_config(configs)
    except InvalidSetting as error:
        raise Refused(ErrorCode.INVALID_CONFIG, str(error)) from None
    return configs


def _automatic(
    image: ClusterImage, spec: TopicSpec, config: BrokerConfig, random: Random
) -> list[tuple[int, ...]]:
    partitions, replication_factor = spec.num_partitions, spec.replication_factor
    if replication_factor < DEFAULT or replication_factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}: expected 1 or more, or -1 for the broker's default",
        )
    if partitions < DEFAULT or partitions == 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions: expected 1 or more, or -1 for the broker's default",
        )
    if partitions == DEFAULT:
        partitions = config.integer("num.partitions")
    if replication_factor == DEFAULT:
        replication_factor = config.integer("default.replication.factor")
    _check_count(partitions)
    return place(_racks(image), partitions, replication_factor, random)


def _manual(image: ClusterImage, spec: TopicSpec) -> list[tuple[int, ...]]:
    if spec.num_partitions != DEFAULT or spec.replication_factor != DEFAULT:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "replicas are assigned by hand: partitions and replication factor must then be -1",
        )
    _check_count(len(spec.assignments))
    by_partition: dict[int, tuple[int, ...]] = {}
    for partition, brokers in spec.assignments:
        if partition in by_partition:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition} is assigned more than once"
            )
        first = next(iter(by_partition.values()), None)
        by_partition[partition] = _checked_replicas(image, partition, brokers, len(first) if first else None)
    if sorted(by_partition) != list(range(len(by_partition))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partitions must be numbered from 0 without a gap, not {sorted(by_partition)}",
        )
    return [by_partition[partition] for partition in range(len(by_partition))]


def _checked_replicas(
    image: ClusterImage, partition: int, brokers: Sequence[int], replication_factor: int | None
) -> tuple[int, ...]:
    def refusal(text: str) -> Refused:
        return Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition}: {text}")

    if not brokers:
        raise refusal("no replica is assigned")
    if len(set(brokers)) != len(brokers):
        raise refusal(f"a broker is named twice in {list(brokers)}")
    unknown = sorted(set(brokers) - image.brokers.keys())
    if unknown:
        raise refusal(
            f"no broker has the id {', '.join(map(str, unknown))}; there are {sorted(image.brokers)}"
        )
    if replication_factor is not None and len(brokers) != replication_factor:
        raise refusal(f"{len(brokers)} replicas, where the partitions before it have {replication_factor}")
    return tuple(brokers)


def _check_count(partitions: int) -> None:
    if partitions > PARTITIONS_PER_TOPIC_CREATE_MAX:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} new partitions: at most {PARTITIONS_PER_TOPIC_CREATE_MAX} can be made at once",
        )


class AddPartitionsPlan:
    def __init__(self, topic: TopicImage, added: list[PartitionImage]) -> None:
        self.topic = topic
        self._added = added
        self._first = len(topic.partitions)
        data = _encode_assignment(topic.id, topic.partitions + added)
        self.steps: list[Step] = [SetData(topic_path(topic.name), data, topic.assignment_version)]
        self.steps += _partition_steps(topic.name, added, self._first)

    def steps_of_deletion(self) -> Sequence[Step]:
        """What it would take to delete the topic afterwards."""
        return DeleteTopicPlan(replace(self.topic, partitions=self.topic.partitions + self._added)).steps

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> PartitionsAdded:
        self.topic.assignment_version = _version(answers[0])
        self.topic.partitions += self._added
        return PartitionsAdded(self.topic, self._first)


def decide_grow(image: ClusterImage, spec: PartitionsSpec, random: Random) -> AddPartitionsPlan:
    """The plan that gives a topic more partitions, or Refused."""
    topic = image.topics.get(spec.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{spec.name}'")
    if any(partition.adding_replicas or partition.removing_replicas for partition in topic.partitions):
        raise Refused(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"topic '{spec.name}' is being reassigned")
    present = len(topic.partitions)
    if spec.count <= present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"topic '{spec.name}' has {present} partitions already; {spec.count} would not be an increase",
        )
    added = spec.count - present
    _check_count(added)
    if spec.assignments is None:
        replicas = place(
            _racks(image),
            added,
            topic.replication_factor,
            random,
            first_partition=present,
            start_broker=topic.partitions[0].replicas[0],
        )
    else:
        if len(spec.assignments) != added:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{added} partitions are added, but {len(spec.assignments)} are assigned",
            )
        replicas = [
            _checked_replicas(image, present + index, brokers, topic.replication_factor)
            for index, brokers in enumerate(spec.assignments)
        ]
    return AddPartitionsPlan(topic, [_new_partition(brokers, image.controller_epoch) for brokers in replicas])


class DeleteTopicPlan:
    """The topic's nodes go in one multi; its logs follow when the change is announced."""

    def __init__(self, topic: TopicImage) -> None:
        self.topic = topic
        self.steps: list[Step] = []
        for index, partition in enumerate(topic.partitions):
            if partition.partition_epoch != NO_ZNODE:
                self.steps.append(Delete(state_path(topic.name, index)))
                self.steps.append(Delete(partition_path(topic.name, index)))
        if self.steps:
            self.steps.append(Delete(partitions_path(topic.name)))
        self.steps.append(Delete(topic_path(topic.name), topic.assignment_version))
        if topic.config_version != NO_ZNODE:
            self.steps.append(Delete(topic_config_path(topic.name)))

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> TopicDeleted:
        image.remove_topic(self.topic)
        return TopicDeleted(self.topic)


def decide_delete(image: ClusterImage, target: str | TopicId, config: BrokerConfig) -> DeleteTopicPlan:
    """The plan that deletes a topic, named or by id, or Refused."""
    if not config.flag("delete.topic.enable"):
        raise Refused(
            ErrorCode.TOPIC_DELETION_DISABLED,
            "delete.topic.enable is false; set it to true in the broker's properties file and restart",
        )
    topic = find_topic(image, target)
    if topic is not None:
        return DeleteTopicPlan(topic)
    if isinstance(target, bytes):
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{target}'")


def find_topic(image: ClusterImage, target: str | TopicId) -> TopicImage | None:
    return image.topics_by_id.get(target) if isinstance(target, bytes) else image.topics.get(target)


def _racks(image: ClusterImage) -> dict[int, str | None]:
    return {broker.id: broker.rack for broker in image.brokers.values()}


def _new_partition(replicas: tuple[int, ...], controller_epoch: int) -> PartitionImage:
    return PartitionImage(replicas[0], 0, replicas, replicas, 0, controller_epoch)


def _encode_assignment(topic_id: TopicId, partitions: Sequence[PartitionImage]) -> bytes:
    replicas = [partition.replicas for partition in partitions]
    return encode_assignment(Assignment(None if topic_id == NO_TOPIC_ID else topic_id, replicas, {}, {}))


def _partition_steps(topic: str, partitions: Sequence[PartitionImage], first: int) -> list[Step]:
    steps: list[Step] = []
    for index, partition in enumerate(partitions, first):
        state = PartitionState(
            partition.leader, partition.leader_epoch, partition.isr, partition.controller_epoch
        )
        steps.append(Create(partition_path(topic, index), None))
        steps.append(Create(state_path(topic, index), encode_state(state)))
    return steps


def _version(answer: StepResult) -> int:
    assert answer.stat is not None
    return answer.stat.version
