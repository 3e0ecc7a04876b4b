"""The table of APIs: key, name, messages, versions. Which of them a broker offers, the server decides.

The messages of an API are imported when it is first used: a command that asks for topics needs two of them.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import cast

from ottla.protocol.fields import Message


class Api:
    """One API; versions and flexibility are those its messages declare."""

    def __init__(self, key: int, slug: str) -> None:
        self.key = key
        self.slug = slug  # the name of its files
        self.name = "".join(word.capitalize() for word in slug.split("_"))  # as Kafka writes it

    @cached_property
    def request(self) -> type[Message]:
        return self._message("Request")

    @cached_property
    def response(self) -> type[Message]:
        return self._message("Response")

    def _message(self, kind: str) -> type[Message]:
        module = import_module(f"ottla.protocol.messages.{self.slug}")
        return cast(type[Message], getattr(module, self.name + kind))

    @cached_property
    def versions(self) -> tuple[int, int]:
        """First and last that are declared."""
        versions = self.request.__versions__
        assert versions is not None
        assert versions == self.response.__versions__
        return versions

    @cached_property
    def flexible_since(self) -> int | None:
        assert self.request.__flexible_since__ == self.response.__flexible_since__
        return self.request.__flexible_since__

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """0 for ApiVersions, always: its answer is read by clients that do not know its version yet."""
        since = self.flexible_since
        return 1 if since is not None and version >= since and self is not API_VERSIONS else 0


PRODUCE = Api(0, "produce")
FETCH = Api(1, "fetch")
LIST_OFFSETS = Api(2, "list_offsets")
METADATA = Api(3, "metadata")
OFFSET_COMMIT = Api(8, "offset_commit")
OFFSET_FETCH = Api(9, "offset_fetch")
FIND_COORDINATOR = Api(10, "find_coordinator")
JOIN_GROUP = Api(11, "join_group")
HEARTBEAT = Api(12, "heartbeat")
LEAVE_GROUP = Api(13, "leave_group")
SYNC_GROUP = Api(14, "sync_group")
DESCRIBE_GROUPS = Api(15, "describe_groups")
LIST_GROUPS = Api(16, "list_groups")
SASL_HANDSHAKE = Api(17, "sasl_handshake")
API_VERSIONS = Api(18, "api_versions")
CREATE_TOPICS = Api(19, "create_topics")
DELETE_TOPICS = Api(20, "delete_topics")
DELETE_RECORDS = Api(21, "delete_records")
INIT_PRODUCER_ID = Api(22, "init_producer_id")
OFFSET_FOR_LEADER_EPOCH = Api(23, "offset_for_leader_epoch")
ADD_PARTITIONS_TO_TXN = Api(24, "add_partitions_to_txn")
ADD_OFFSETS_TO_TXN = Api(25, "add_offsets_to_txn")
END_TXN = Api(26, "end_txn")
WRITE_TXN_MARKERS = Api(27, "write_txn_markers")
TXN_OFFSET_COMMIT = Api(28, "txn_offset_commit")
DESCRIBE_CONFIGS = Api(32, "describe_configs")
ALTER_CONFIGS = Api(33, "alter_configs")
DESCRIBE_LOG_DIRS = Api(35, "describe_log_dirs")
SASL_AUTHENTICATE = Api(36, "sasl_authenticate")
CREATE_PARTITIONS = Api(37, "create_partitions")
DELETE_GROUPS = Api(42, "delete_groups")
INCREMENTAL_ALTER_CONFIGS = Api(44, "incremental_alter_configs")
OFFSET_DELETE = Api(47, "offset_delete")
DESCRIBE_CLUSTER = Api(60, "describe_cluster")
DESCRIBE_PRODUCERS = Api(61, "describe_producers")
DESCRIBE_TRANSACTIONS = Api(65, "describe_transactions")
LIST_TRANSACTIONS = Api(66, "list_transactions")
CONSUMER_GROUP_HEARTBEAT = Api(68, "consumer_group_heartbeat")
CONSUMER_GROUP_DESCRIBE = Api(69, "consumer_group_describe")
LIST_CONFIG_RESOURCES = Api(74, "list_config_resources")
DESCRIBE_TOPIC_PARTITIONS = Api(75, "describe_topic_partitions")

APIS: dict[int, Api] = {
    api.key: api
    for api in (
        PRODUCE,
        FETCH,
        LIST_OFFSETS,
        METADATA,
        OFFSET_COMMIT,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        JOIN_GROUP,
        HEARTBEAT,
        LEAVE_GROUP,
        SYNC_GROUP,
        DESCRIBE_GROUPS,
        LIST_GROUPS,
        SASL_HANDSHAKE,
        API_VERSIONS,
        CREATE_TOPICS,
        DELETE_TOPICS,
        DELETE_RECORDS,
        INIT_PRODUCER_ID,
        OFFSET_FOR_LEADER_EPOCH,
        ADD_PARTITIONS_TO_TXN,
        ADD_OFFSETS_TO_TXN,
        END_TXN,
        WRITE_TXN_MARKERS,
        TXN_OFFSET_COMMIT,
        DESCRIBE_CONFIGS,
        ALTER_CONFIGS,
        DESCRIBE_LOG_DIRS,
        SASL_AUTHENTICATE,
        CREATE_PARTITIONS,
        DELETE_GROUPS,
        INCREMENTAL_ALTER_CONFIGS,
        OFFSET_DELETE,
        DESCRIBE_CLUSTER,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_TRANSACTIONS,
        CONSUMER_GROUP_HEARTBEAT,
        CONSUMER_GROUP_DESCRIBE,
        LIST_CONFIG_RESOURCES,
        DESCRIBE_TOPIC_PARTITIONS,
    )
}
