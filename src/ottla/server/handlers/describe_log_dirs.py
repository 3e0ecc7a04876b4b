"""DescribeLogDirs 1-4: which partitions lie in which log directory, how large, and how much room is left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ottla.log.directory import LogDirectory
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ottla.security.authorizer import CLUSTER_NAME
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DescribeLogDirsRequest], services: Services) -> DescribeLogDirsResponse:
    if not exchange.may(CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = exchange.request.topics
    wanted = (
        None if asked is None else {(topic.topic, index) for topic in asked for index in topic.partitions}
    )
    return DescribeLogDirsResponse(
        results=[_describe(directory, services, wanted) for directory in services.directories]
    )


def _describe(
    directory: LogDirectory, services: Services, wanted: set[tuple[str, int]] | None
) -> DescribeLogDirsResult:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in services.partitions:
        if os.path.dirname(partition.log.directory) != directory.path:
            continue
        if wanted is None or (partition.topic, partition.index) in wanted:
            described = DescribeLogDirsPartition(partition.index, partition.log.size_bytes)
            topics.setdefault(partition.topic, []).append(described)
    total_bytes, usable_bytes = directory.space()
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
