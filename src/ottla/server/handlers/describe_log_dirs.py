"""DescribeLogDirs 1-4: which partitions lie in which log directory, how large, and how much room is left.

A directory that failed is told with KAFKA_STORAGE_ERROR. A partition that is offline in a directory that
works has no size and the lag -1, which Kafka gives for logs that are not in use.
"""

from __future__ import annotations

import os
from collections.abc import Generator
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
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

_NOT_IN_USE = -1


def handle(exchange: Exchange[DescribeLogDirsRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeLogDirsRequest], services: Services) -> Steps:
    if not exchange.may(CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    asked = exchange.request.topics
    wanted = (
        None if asked is None else {(topic.topic, index) for topic in asked for index in topic.partitions}
    )
    results = []
    for directory in services.directories:
        described = yield from _describe(directory, services, wanted)
        results.append(described)
    failed = services.directories.failed
    results += [DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, path) for path in failed]
    return DescribeLogDirsResponse(results=results)


def _describe(
    directory: LogDirectory, services: Services, wanted: set[tuple[str, int]] | None
) -> Generator[None, None, DescribeLogDirsResult]:
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in list(services.partitions):
        yield None
        if os.path.dirname(partition.log.directory) != directory.path:
            continue
        if wanted is None or (partition.topic, partition.index) in wanted:
            described = DescribeLogDirsPartition(partition.index, partition.log.size_bytes)
            topics.setdefault(partition.topic, []).append(described)
    for topic, index in directory.failed:
        if wanted is None or (topic, index) in wanted:
            topics.setdefault(topic, []).append(DescribeLogDirsPartition(index, 0, _NOT_IN_USE))
    total_bytes, usable_bytes = directory.space()
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name, partitions) for name, partitions in topics.items()],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
