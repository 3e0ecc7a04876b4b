"""What the controller announces after a change is durable and in the image, and what a decided change is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.controller.cluster import BrokerImage, ClusterImage, TopicImage
from ottla.coordination.operations import Step, StepResult


@dataclass(slots=True, frozen=True)
class TopicCreated:
    topic: TopicImage


@dataclass(slots=True, frozen=True)
class TopicDeleted:
    topic: TopicImage  # as it was


@dataclass(slots=True, frozen=True)
class PartitionsAdded:
    topic: TopicImage
    first_partition: int  # this one and those behind it are new


@dataclass(slots=True, frozen=True)
class TopicConfigChanged:
    topic: TopicImage


@dataclass(slots=True, frozen=True)
class BrokerConfigChanged:
    broker_id: int | None  # None: the default of the whole cluster


@dataclass(slots=True, frozen=True)
class PartitionsChanged:
    """Leader, leader epoch or in-sync replicas of partitions have changed."""

    partitions: Sequence[tuple[TopicImage, int]]


@dataclass(slots=True, frozen=True)
class BrokerRegistered:
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
