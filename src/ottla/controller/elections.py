"""Who leads: the controller of the cluster, and the leader epochs of partitions. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.controller.changes import BrokerRegistered, PartitionsChanged
from ottla.controller.cluster import BrokerImage, ClusterImage, PartitionImage, TopicImage, Znodes
from ottla.controller.znode_formats import (
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ROOTS,
    EndPoint,
    PartitionState,
    broker_path,
    decode_controller,
    encode_broker,
    encode_cluster_id,
    encode_controller,
    encode_state,
    state_path,
)
from ottla.coordination.operations import Create, SetData, Step, StepResult
from ottla.coordination.paths import parent_of
from ottla.model.errors import ErrorCode, Refused


class TakeOfficePlan:
    """The nodes that every cluster has, its id, and this broker as its controller under a new epoch."""

    def __init__(self, znodes: Znodes, broker_id: int, new_cluster_id: str, now_ms: int) -> None:
        self.steps: list[Step] = [
            Create(path, None) for path in _missing(znodes, *ROOTS, parent_of(CLUSTER_ID))
        ]
        if znodes.read(CLUSTER_ID) is None:
            self.steps.append(Create(CLUSTER_ID, encode_cluster_id(new_cluster_id)))
        epoch = znodes.read(CONTROLLER_EPOCH)
        if epoch is None:
            self.steps.append(Create(CONTROLLER_EPOCH, b"1"))
        else:
            data, stat = epoch
            self.steps.append(SetData(CONTROLLER_EPOCH, b"%d" % (int(data or b"0") + 1), stat.version))
        self.steps.append(Create(CONTROLLER, encode_controller(broker_id, now_ms), ephemeral=True))

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> None:
        """The image is loaded afterwards, from the nodes."""


def decide_take_office(znodes: Znodes, broker_id: int, new_cluster_id: str, now_ms: int) -> TakeOfficePlan:
    present = znodes.read(CONTROLLER)
    if present is not None:
        raise Refused(
            ErrorCode.NOT_CONTROLLER, f"broker {decode_controller(present[0])} is the controller already"
        )
    return TakeOfficePlan(znodes, broker_id, new_cluster_id, now_ms)


def _missing(znodes: Znodes, *wanted: str) -> list[str]:
    """Paths that are not there yet, each behind the one above it."""
    missing: dict[str, None] = {}
    for path in wanted:
        above = []
        while path != "/" and path not in missing and znodes.read(path) is None:
            above.append(path)
            path = parent_of(path)
        missing.update(dict.fromkeys(reversed(above)))
    return list(missing)


class RegisterBrokerPlan:
    """The broker is there for as long as its session lives."""

    def __init__(self, broker_id: int, endpoints: Sequence[EndPoint], rack: str | None, now_ms: int) -> None:
        self._broker_id = broker_id
        self._endpoints = tuple(endpoints)
        self._rack = rack
        data = encode_broker(endpoints, rack, now_ms)
        self.steps: list[Step] = [Create(broker_path(broker_id), data, ephemeral=True)]

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> BrokerRegistered:
        stat = answers[0].stat
        assert stat is not None
        broker = BrokerImage(self._broker_id, self._endpoints, self._rack, stat.czxid)
        image.brokers[broker.id] = broker
        return BrokerRegistered(broker)


def decide_register(
    image: ClusterImage, broker_id: int, endpoints: Sequence[EndPoint], rack: str | None, now_ms: int
) -> RegisterBrokerPlan:
    if broker_id in image.brokers:
        raise Refused(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            f"a broker with the id {broker_id} is registered; give this one another node.id",
        )
    return RegisterBrokerPlan(broker_id, endpoints, rack, now_ms)


class LeaderEpochPlan:
    """Same leaders, next epoch: what they lost in an unclean stop cannot be mistaken for what comes now."""

    def __init__(self, image: ClusterImage, partitions: Sequence[tuple[TopicImage, int]]) -> None:
        self._partitions = partitions
        self._raised: list[PartitionImage] = []
        self.steps: list[Step] = []
        for topic, index in partitions:
            old = topic.partitions[index]
            new = old._replace(leader_epoch=old.leader_epoch + 1, controller_epoch=image.controller_epoch)
            state = PartitionState(new.leader, new.leader_epoch, new.isr, new.controller_epoch)
            self.steps.append(
                SetData(state_path(topic.name, index), encode_state(state), old.partition_epoch)
            )
            self._raised.append(new)

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> PartitionsChanged:
        for (topic, index), partition, answer in zip(self._partitions, self._raised, answers, strict=True):
            assert answer.stat is not None
            topic.partitions[index] = partition._replace(partition_epoch=answer.stat.version)
        return PartitionsChanged(self._partitions)
