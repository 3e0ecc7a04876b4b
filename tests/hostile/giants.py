"""The largest request of every API whose work grows with what it names."""

from __future__ import annotations

from collections.abc import Callable

from ottla.protocol import apis
from ottla.protocol.apis import Api
from ottla.protocol.fields import Message
from ottla.protocol.headers import encode_request
from ottla.protocol.messages import add_partitions_to_txn as add_partitions
from ottla.protocol.messages import alter_configs as alter
from ottla.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    leave_group,
    metadata,
)
from ottla.protocol.messages import create_partitions as grow
from ottla.protocol.messages import create_topics as create
from ottla.protocol.messages import delete_records as trim
from ottla.protocol.messages import delete_topics as delete
from ottla.protocol.messages import describe_configs as describe
from ottla.protocol.messages import describe_log_dirs as log_dirs
from ottla.protocol.messages import describe_producers as producers
from ottla.protocol.messages import describe_topic_partitions as topic_partitions
from ottla.protocol.messages import describe_transactions as transactions
from ottla.protocol.messages import fetch as fetching
from ottla.protocol.messages import find_coordinator as coordinator
from ottla.protocol.messages import incremental_alter_configs as incremental
from ottla.protocol.messages import list_offsets as offsets
from ottla.protocol.messages import offset_commit as commit
from ottla.protocol.messages import offset_delete as forget
from ottla.protocol.messages import offset_fetch as committed
from ottla.protocol.messages import offset_for_leader_epoch as epochs
from ottla.protocol.messages import produce as producing
from ottla.protocol.messages import txn_offset_commit as txn_commit
from ottla.protocol.messages import write_txn_markers as markers

TOPIC = "t"

Giant = tuple[Api, int, Callable[[int], Message]]


def encoded(giant: Giant, count: int) -> bytes:
    """As a frame."""
    api, version, make = giant
    return b"".join(map(bytes, encode_request(api, version, 1, "giant", make(count))))


def _names(count: int) -> list[str]:
    return [f"g{number}" for number in range(count)]


def _numbers(count: int) -> range:
    return range(count)


GIANTS: list[Giant] = [
    (
        apis.PRODUCE,
        9,
        lambda count: producing.ProduceRequest(
            None,
            -1,
            1000,
            [
                producing.TopicProduceData(
                    TOPIC,
                    partition_data=[producing.PartitionProduceData(each, b"") for each in _numbers(count)],
                )
            ],
        ),
    ),
    (
        apis.FETCH,
        12,
        lambda count: fetching.FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            topics=[
                fetching.FetchTopic(
                    TOPIC,
                    partitions=[fetching.FetchPartition(partition=each) for each in _numbers(count)],
                )
            ],
        ),
    ),
    (
        apis.LIST_OFFSETS,
        7,
        lambda count: offsets.ListOffsetsRequest(
            topics=[
                offsets.ListOffsetsTopic(
                    TOPIC, [offsets.ListOffsetsPartition(each, timestamp=-1) for each in _numbers(count)]
                )
            ]
        ),
    ),
    (
        apis.METADATA,
        9,
        lambda count: metadata.MetadataRequest(
            [metadata.MetadataRequestTopic(name=name) for name in _names(count)],
            allow_auto_topic_creation=False,
        ),
    ),
    (
        apis.OFFSET_COMMIT,
        8,
        lambda count: commit.OffsetCommitRequest(
            "g",
            topics=[
                commit.OffsetCommitRequestTopic(
                    TOPIC,
                    partitions=[commit.OffsetCommitRequestPartition(each) for each in _numbers(count)],
                )
            ],
        ),
    ),
    (
        apis.OFFSET_FETCH,
        8,
        lambda count: committed.OffsetFetchRequest(
            groups=[
                committed.OffsetFetchRequestGroup(
                    "g", topics=[committed.OffsetFetchRequestTopics(TOPIC, partition_indexes=_numbers(count))]
                )
            ]
        ),
    ),
    (
        apis.FIND_COORDINATOR,
        4,
        lambda count: coordinator.FindCoordinatorRequest(coordinator_keys=_names(count)),
    ),
    (
        apis.LEAVE_GROUP,
        4,
        lambda count: leave_group.LeaveGroupRequest(
            "g", members=[leave_group.MemberIdentity(name) for name in _names(count)]
        ),
    ),
    (apis.DESCRIBE_GROUPS, 5, lambda count: describe_groups.DescribeGroupsRequest(_names(count))),
    (apis.DELETE_GROUPS, 2, lambda count: delete_groups.DeleteGroupsRequest(_names(count))),
    (
        apis.CREATE_TOPICS,
        5,
        lambda count: create.CreateTopicsRequest(
            [create.CreatableTopic(name, 1, 1) for name in _names(count)], validate_only=True
        ),
    ),
    (apis.DELETE_TOPICS, 4, lambda count: delete.DeleteTopicsRequest(topic_names=_names(count))),
    (
        apis.DELETE_RECORDS,
        2,
        lambda count: trim.DeleteRecordsRequest(
            [
                trim.DeleteRecordsTopic(
                    TOPIC, [trim.DeleteRecordsPartition(each, -1) for each in _numbers(count)]
                )
            ]
        ),
    ),
    (
        apis.OFFSET_FOR_LEADER_EPOCH,
        4,
        lambda count: epochs.OffsetForLeaderEpochRequest(
            -1,
            [
                epochs.OffsetForLeaderTopic(
                    TOPIC, [epochs.OffsetForLeaderPartition(each) for each in _numbers(count)]
                )
            ],
        ),
    ),
    (
        apis.ADD_PARTITIONS_TO_TXN,
        3,
        lambda count: add_partitions.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_topics=[add_partitions.AddPartitionsToTxnTopic(TOPIC, _numbers(count))],
        ),
    ),
    (
        apis.WRITE_TXN_MARKERS,
        1,
        lambda count: markers.WriteTxnMarkersRequest(
            [
                markers.WritableTxnMarker(
                    77, 0, topics=[markers.WritableTxnMarkerTopic(TOPIC, _numbers(count))]
                )
            ]
        ),
    ),
    (
        apis.TXN_OFFSET_COMMIT,
        3,
        lambda count: txn_commit.TxnOffsetCommitRequest(
            "x",
            "g",
            topics=[
                txn_commit.TxnOffsetCommitRequestTopic(
                    TOPIC, [txn_commit.TxnOffsetCommitRequestPartition(each) for each in _numbers(count)]
                )
            ],
        ),
    ),
    (
        apis.DESCRIBE_CONFIGS,
        4,
        lambda count: describe.DescribeConfigsRequest(
            [describe.DescribeConfigsResource(2, name, None) for name in _names(count)]
        ),
    ),
    (
        apis.ALTER_CONFIGS,
        2,
        lambda count: alter.AlterConfigsRequest(
            [alter.AlterConfigsResource(2, name) for name in _names(count)], validate_only=True
        ),
    ),
    (
        apis.INCREMENTAL_ALTER_CONFIGS,
        1,
        lambda count: incremental.IncrementalAlterConfigsRequest(
            [incremental.AlterConfigsResource(2, name) for name in _names(count)], validate_only=True
        ),
    ),
    (
        apis.DESCRIBE_LOG_DIRS,
        2,
        lambda count: log_dirs.DescribeLogDirsRequest(
            [log_dirs.DescribableLogDirTopic(TOPIC, _numbers(count))]
        ),
    ),
    (
        apis.CREATE_PARTITIONS,
        2,
        lambda count: grow.CreatePartitionsRequest(
            [grow.CreatePartitionsTopic(name, 2, None) for name in _names(count)], validate_only=True
        ),
    ),
    (
        apis.OFFSET_DELETE,
        0,
        lambda count: forget.OffsetDeleteRequest(
            "g",
            [
                forget.OffsetDeleteRequestTopic(
                    TOPIC, [forget.OffsetDeleteRequestPartition(each) for each in _numbers(count)]
                )
            ],
        ),
    ),
    (
        apis.CONSUMER_GROUP_DESCRIBE,
        0,
        lambda count: consumer_group_describe.ConsumerGroupDescribeRequest(_names(count)),
    ),
    (
        apis.DESCRIBE_PRODUCERS,
        0,
        lambda count: producers.DescribeProducersRequest([producers.TopicRequest(TOPIC, _numbers(count))]),
    ),
    (
        apis.DESCRIBE_TRANSACTIONS,
        0,
        lambda count: transactions.DescribeTransactionsRequest(_names(count)),
    ),
    (
        apis.DESCRIBE_TOPIC_PARTITIONS,
        0,
        lambda count: topic_partitions.DescribeTopicPartitionsRequest(
            [topic_partitions.TopicRequest(name) for name in _names(count)]
        ),
    ),
]
