"""Who leads a partition, as clients are told: nobody, while the leader makes its files or cannot use them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.controller.cluster import NO_LEADER, PartitionImage, TopicImage
from ottla.model.errors import ErrorCode
from ottla.model.values import NamedTuple

if TYPE_CHECKING:
    from ottla.server.services import Services


class Leadership(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    offline_replicas: Sequence[int]


def leadership(services: Services, topic: TopicImage, index: int, partition: PartitionImage) -> Leadership:
    offline: Sequence[int] = ()
    leader = partition.leader
    if services.partitions.is_offline(topic.name, index):
        offline = (services.node_id,)
    if leader == services.node_id and (offline or services.partitions.is_expected(topic.name, index)):
        leader = NO_LEADER
    error = ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE
    return Leadership(error, leader, offline)
