"""What the controller announces after a change is durable and in the image, and what a decided change is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ottla.controller.cluster import BrokerImage, ClusterImage, TopicImage
from ottla.coordination.operations import Step, StepResult
from ottla.model.values import NamedTuple


class TopicCreated(NamedTuple):
    topic: TopicImage


class TopicDeleted(NamedTuple):
    topic: TopicImage  # as it was


class PartitionsAdded(NamedTuple):
    topic: TopicImage
    first_partition: int  # this one and those behind it are new


class TopicConfigChanged(NamedTuple):
    topic: TopicImage


class BrokerConfigChanged(NamedTuple):
    broker_id: int | None  # None: the default of the whole cluster


class PartitionsChanged(NamedTuple):
    """Leader, leader epoch or in-sync replicas of partitions have changed."""

    partitions: Sequence[tuple[TopicImage, int]]


class BrokerRegistered(NamedTuple):
    broker: BrokerImage


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | TopicConfigChanged
    | BrokerConfigChanged
    | PartitionsChanged
    | BrokerRegistered
)


class Plan(Protocol):
    """A change that was decided: the steps of its multi, and what it does to the image once durable."""

    @property
    def steps(self) -> Sequence[Step]: ...

    def apply(self, image: ClusterImage, answers: Sequence[StepResult]) -> Change | None: ...
