"""Produce: batches to append, per partition.

5 tells the log start; 7 allows zstd; 8 names the records that were refused (KIP-467); 9 is flexible; 10
names the new leader (KIP-951); 11 may answer TRANSACTION_ABORTABLE; 12 adds the partition to the
transaction by itself (KIP-890); 13 names topics by id (KIP-516). 0 to 2 carry older record formats and are
only advertised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Int64, Message, Records, ignorable, since, tagged, until


class PartitionProduceData(Message):
    index: Int32 = 0
    records: Records = None


class TopicProduceData(Message):
    name: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[TopicId, since(13), ignorable] = NO_TOPIC_ID
    partition_data: Sequence[PartitionProduceData] = ()


class ProduceRequest(Message, versions=(3, 13), flexible_since=9):
    transactional_id: str | None = None
    acks: Int16 = 0  # 0: no answer at all; 1: the leader's log; -1: every in-sync replica
    timeout_ms: Int32 = 0
    topic_data: Sequence[TopicProduceData] = ()


class BatchIndexAndErrorMessage(Message):
    batch_index: Int32 = 0  # which record of the batch
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(Message):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class PartitionProduceResponse(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Int64 = -1  # -1: the records keep their own timestamps
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    record_errors: Annotated[Sequence[BatchIndexAndErrorMessage], since(8), ignorable] = ()
    error_message: Annotated[str | None, since(8), ignorable] = None
    # set with NOT_LEADER_OR_FOLLOWER
    current_leader: Annotated[LeaderIdAndEpoch, tagged(0, since=10)] = LeaderIdAndEpoch()


class TopicProduceResponse(Message):
    name: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[TopicId, since(13), ignorable] = NO_TOPIC_ID
    partition_responses: Sequence[PartitionProduceResponse] = ()


class NodeEndpoint(Message):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None


class ProduceResponse(Message, versions=(3, 13), flexible_since=9):
    responses: Sequence[TopicProduceResponse] = ()
    throttle_time_ms: Int32 = 0
    node_endpoints: Annotated[Sequence[NodeEndpoint], tagged(0, since=10)] = ()  # of the leaders named above
