"""The visible list of what this broker answers: API, version range, handler, and the permission it needs.

A version is listed only when every field of it is honoured. Produce says 0 because librdkafka looks there
for compression support (KAFKA-18659); versions 0 to 2 themselves are refused with an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol import apis
from ottla.protocol.apis import Api
from ottla.protocol.codec import reader
from ottla.protocol.fields import Message
from ottla.protocol.primitives import Buffer
from ottla.security.authorizer import Operation, ResourceType
from ottla.server import fetch_requests, offset_commit_requests, produce_requests
from ottla.server.exchange import ApiMetrics, Exchange
from ottla.server.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from ottla.server.services import Services

Handler = Callable[[Exchange[Any], Services], Message | None]
GroupHandler = Callable[[list[Exchange[Any]], Services], None]
Reader = Callable[[Buffer, int], tuple[Any, int]]


class Route:
    """How one API is served: request by request, or all of a turn together (`handle_turn`)."""

    __slots__ = (
        "_reader_of",
        "api",
        "handle",
        "handle_turn",
        "handled",
        "metrics",
        "operation",
        "readers",
        "resource",
        "versions",
    )

    def __init__(
        self,
        api: Api,
        versions: tuple[int, int],
        operation: Operation,
        resource: ResourceType,
        handle: Handler | None = None,
        handle_turn: GroupHandler | None = None,
        reader_of: Callable[[int], Reader] | None = None,
    ) -> None:
        assert api.versions[1] >= versions[1], api.name
        self.api = api
        self.versions = versions  # as ApiVersions tells them
        self.handled = (max(api.versions[0], versions[0]), versions[1])  # without those only told of
        self.operation = operation  # what the peer must be allowed to do …
        self.resource = resource  # … to resources of this type
        self.handle = handle
        self.handle_turn = handle_turn
        self._reader_of = reader_of or (lambda version: reader(api.request, version))
        self.readers: dict[int, Reader] = {}  # by version, once they were needed
        self.metrics: ApiMetrics  # set when a broker's routes are made

    def reader(self, version: int) -> Reader:
        """What makes a request of a frame, from a position on; it raises Malformed."""
        read = self.readers.get(version)
        if read is None:
            read = self.readers[version] = self._reader_of(version)
        return read


def all_routes() -> list[Route]:
    op, on = Operation, ResourceType
    return [
        Route(
            apis.PRODUCE,
            (0, 13),
            op.WRITE,
            on.TOPIC,
            handle_turn=produce.handle_turn,
            reader_of=produce_requests.reader_of,
        ),
        Route(apis.FETCH, (4, 18), op.READ, on.TOPIC, fetch.handle, reader_of=fetch_requests.reader_of),
        Route(apis.LIST_OFFSETS, (1, 11), op.DESCRIBE, on.TOPIC, list_offsets.handle),
        Route(apis.METADATA, (0, 13), op.DESCRIBE, on.TOPIC, metadata.handle),
        Route(
            apis.OFFSET_COMMIT,
            (2, 10),
            op.READ,
            on.GROUP,
            offset_commit.handle,
            reader_of=offset_commit_requests.reader_of,
        ),
        Route(apis.OFFSET_FETCH, (1, 10), op.DESCRIBE, on.GROUP, offset_fetch.handle),
        Route(apis.FIND_COORDINATOR, (0, 6), op.DESCRIBE, on.GROUP, find_coordinator.handle),
        Route(apis.JOIN_GROUP, (0, 9), op.READ, on.GROUP, join_group.handle),
        Route(apis.HEARTBEAT, (0, 4), op.READ, on.GROUP, heartbeat.handle),
        Route(apis.LEAVE_GROUP, (0, 5), op.READ, on.GROUP, leave_group.handle),
        Route(apis.SYNC_GROUP, (0, 5), op.READ, on.GROUP, sync_group.handle),
        Route(apis.DESCRIBE_GROUPS, (0, 6), op.DESCRIBE, on.GROUP, describe_groups.handle),
        Route(apis.LIST_GROUPS, (0, 5), op.DESCRIBE, on.GROUP, list_groups.handle),
        Route(apis.API_VERSIONS, (0, 4), op.ANY, on.ANY, api_versions.handle),
        Route(apis.CREATE_TOPICS, (2, 7), op.CREATE, on.TOPIC, create_topics.handle),
        Route(apis.DELETE_TOPICS, (1, 6), op.DELETE, on.TOPIC, delete_topics.handle),
        Route(apis.DELETE_RECORDS, (0, 2), op.DELETE, on.TOPIC, delete_records.handle),
        Route(apis.INIT_PRODUCER_ID, (0, 6), op.IDEMPOTENT_WRITE, on.CLUSTER, init_producer_id.handle),
        Route(apis.OFFSET_FOR_LEADER_EPOCH, (2, 4), op.DESCRIBE, on.TOPIC, offset_for_leader_epoch.handle),
        Route(
            apis.ADD_PARTITIONS_TO_TXN, (0, 5), op.WRITE, on.TRANSACTIONAL_ID, add_partitions_to_txn.handle
        ),
        Route(apis.ADD_OFFSETS_TO_TXN, (0, 4), op.WRITE, on.TRANSACTIONAL_ID, add_offsets_to_txn.handle),
        Route(apis.END_TXN, (0, 5), op.WRITE, on.TRANSACTIONAL_ID, end_txn.handle),
        Route(apis.WRITE_TXN_MARKERS, (1, 2), op.CLUSTER_ACTION, on.CLUSTER, write_txn_markers.handle),
        Route(apis.TXN_OFFSET_COMMIT, (0, 5), op.READ, on.GROUP, txn_offset_commit.handle),
        Route(apis.DESCRIBE_CONFIGS, (1, 4), op.DESCRIBE_CONFIGS, on.TOPIC, describe_configs.handle),
        Route(apis.ALTER_CONFIGS, (0, 2), op.ALTER_CONFIGS, on.TOPIC, alter_configs.handle),
        Route(apis.DESCRIBE_LOG_DIRS, (1, 4), op.DESCRIBE, on.CLUSTER, describe_log_dirs.handle),
        Route(apis.CREATE_PARTITIONS, (0, 3), op.ALTER, on.TOPIC, create_partitions.handle),
        Route(apis.DELETE_GROUPS, (0, 2), op.DELETE, on.GROUP, delete_groups.handle),
        Route(
            apis.INCREMENTAL_ALTER_CONFIGS,
            (0, 1),
            op.ALTER_CONFIGS,
            on.TOPIC,
            incremental_alter_configs.handle,
        ),
        Route(apis.CONSUMER_GROUP_HEARTBEAT, (0, 1), op.READ, on.GROUP, consumer_group_heartbeat.handle),
        Route(apis.CONSUMER_GROUP_DESCRIBE, (0, 1), op.DESCRIBE, on.GROUP, consumer_group_describe.handle),
        Route(apis.OFFSET_DELETE, (0, 0), op.DELETE, on.GROUP, offset_delete.handle),
        Route(apis.DESCRIBE_CLUSTER, (0, 2), op.DESCRIBE, on.CLUSTER, describe_cluster.handle),
        Route(apis.DESCRIBE_PRODUCERS, (0, 0), op.READ, on.TOPIC, describe_producers.handle),
        Route(
            apis.DESCRIBE_TRANSACTIONS, (0, 0), op.DESCRIBE, on.TRANSACTIONAL_ID, describe_transactions.handle
        ),
        Route(apis.LIST_TRANSACTIONS, (0, 1), op.DESCRIBE, on.TRANSACTIONAL_ID, list_transactions.handle),
        Route(
            apis.LIST_CONFIG_RESOURCES, (0, 1), op.DESCRIBE_CONFIGS, on.CLUSTER, list_config_resources.handle
        ),
        Route(
            apis.DESCRIBE_TOPIC_PARTITIONS, (0, 0), op.DESCRIBE, on.TOPIC, describe_topic_partitions.handle
        ),
    ]
