"""The table of APIs: key, name, messages, versions. Which of them a broker offers, the server decides."""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.protocol.fields import Message
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ottla.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from ottla.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from ottla.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from ottla.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ottla.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from ottla.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ottla.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ottla.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


@dataclass(slots=True, eq=False)
class Api:
    """One API; versions and flexibility are those its messages declare."""

    key: int
    slug: str  # the name of its files
    request: type[Message]
    response: type[Message]
    name: str = field(init=False)  # as Kafka writes it
    versions: tuple[int, int] = field(init=False)  # first and last that are declared
    flexible_since: int | None = field(init=False)

    def __post_init__(self) -> None:
        versions = self.request.__versions__
        assert versions is not None
        assert versions == self.response.__versions__
        assert self.request.__flexible_since__ == self.response.__flexible_since__
        self.name = self.request.__name__.removesuffix("Request")
        self.versions = versions
        self.flexible_since = self.request.__flexible_since__

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """0 for ApiVersions, always: its answer is read by clients that do not know its version yet."""
        return 1 if self.is_flexible(version) and self is not API_VERSIONS else 0


PRODUCE = Api(0, "produce", ProduceRequest, ProduceResponse)
FETCH = Api(1, "fetch", FetchRequest, FetchResponse)
LIST_OFFSETS = Api(2, "list_offsets", ListOffsetsRequest, ListOffsetsResponse)
METADATA = Api(3, "metadata", MetadataRequest, MetadataResponse)
OFFSET_COMMIT = Api(8, "offset_commit", OffsetCommitRequest, OffsetCommitResponse)
OFFSET_FETCH = Api(9, "offset_fetch", OffsetFetchRequest, OffsetFetchResponse)
FIND_COORDINATOR = Api(10, "find_coordinator", FindCoordinatorRequest, FindCoordinatorResponse)
JOIN_GROUP = Api(11, "join_group", JoinGroupRequest, JoinGroupResponse)
HEARTBEAT = Api(12, "heartbeat", HeartbeatRequest, HeartbeatResponse)
LEAVE_GROUP = Api(13, "leave_group", LeaveGroupRequest, LeaveGroupResponse)
SYNC_GROUP = Api(14, "sync_group", SyncGroupRequest, SyncGroupResponse)
DESCRIBE_GROUPS = Api(15, "describe_groups", DescribeGroupsRequest, DescribeGroupsResponse)
LIST_GROUPS = Api(16, "list_groups", ListGroupsRequest, ListGroupsResponse)
API_VERSIONS = Api(18, "api_versions", ApiVersionsRequest, ApiVersionsResponse)
CREATE_TOPICS = Api(19, "create_topics", CreateTopicsRequest, CreateTopicsResponse)
DELETE_TOPICS = Api(20, "delete_topics", DeleteTopicsRequest, DeleteTopicsResponse)
DELETE_RECORDS = Api(21, "delete_records", DeleteRecordsRequest, DeleteRecordsResponse)
INIT_PRODUCER_ID = Api(22, "init_producer_id", InitProducerIdRequest, InitProducerIdResponse)
OFFSET_FOR_LEADER_EPOCH = Api(
    23, "offset_for_leader_epoch", OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
)
ADD_PARTITIONS_TO_TXN = Api(
    24, "add_partitions_to_txn", AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
)
ADD_OFFSETS_TO_TXN = Api(25, "add_offsets_to_txn", AddOffsetsToTxnRequest, AddOffsetsToTxnResponse)
END_TXN = Api(26, "end_txn", EndTxnRequest, EndTxnResponse)
WRITE_TXN_MARKERS = Api(27, "write_txn_markers", WriteTxnMarkersRequest, WriteTxnMarkersResponse)
TXN_OFFSET_COMMIT = Api(28, "txn_offset_commit", TxnOffsetCommitRequest, TxnOffsetCommitResponse)
DESCRIBE_CONFIGS = Api(32, "describe_configs", DescribeConfigsRequest, DescribeConfigsResponse)
ALTER_CONFIGS = Api(33, "alter_configs", AlterConfigsRequest, AlterConfigsResponse)
DESCRIBE_LOG_DIRS = Api(35, "describe_log_dirs", DescribeLogDirsRequest, DescribeLogDirsResponse)
CREATE_PARTITIONS = Api(37, "create_partitions", CreatePartitionsRequest, CreatePartitionsResponse)
DELETE_GROUPS = Api(42, "delete_groups", DeleteGroupsRequest, DeleteGroupsResponse)
INCREMENTAL_ALTER_CONFIGS = Api(
    44, "incremental_alter_configs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
)
OFFSET_DELETE = Api(47, "offset_delete", OffsetDeleteRequest, OffsetDeleteResponse)
DESCRIBE_CLUSTER = Api(60, "describe_cluster", DescribeClusterRequest, DescribeClusterResponse)
DESCRIBE_PRODUCERS = Api(61, "describe_producers", DescribeProducersRequest, DescribeProducersResponse)
DESCRIBE_TRANSACTIONS = Api(
    65, "describe_transactions", DescribeTransactionsRequest, DescribeTransactionsResponse
)
LIST_TRANSACTIONS = Api(66, "list_transactions", ListTransactionsRequest, ListTransactionsResponse)
CONSUMER_GROUP_HEARTBEAT = Api(
    68, "consumer_group_heartbeat", ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
)
CONSUMER_GROUP_DESCRIBE = Api(
    69, "consumer_group_describe", ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
)
LIST_CONFIG_RESOURCES = Api(
    74, "list_config_resources", ListConfigResourcesRequest, ListConfigResourcesResponse
)
DESCRIBE_TOPIC_PARTITIONS = Api(
    75, "describe_topic_partitions", DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
)

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
