"""Fetch: batches from an offset on, per partition, for consumers and followers.

5 tells the log start; 7 has sessions that name only what changed (KIP-227); 9 checks leader epochs
(KIP-320); 10 allows zstd; 11 can send a consumer to a nearer replica (KIP-392); 12 is flexible and finds
diverging logs; 13 names topics by id (KIP-516); 15 moves the follower's id into a tag with its broker epoch
(KIP-903); 16 names the new leader (KIP-951); 17 carries directory ids (KIP-853); 18 the follower's high
watermark (KIP-1166).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import (
    NO_UUID,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    Records,
    Uuid,
    ignorable,
    since,
    tagged,
    until,
)


class ReplicaState(Message):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


class FetchPartition(Message):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9), ignorable] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1  # of the follower that asks
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, tagged(0, since=17), ignorable] = NO_UUID
    high_watermark: Annotated[Int64, tagged(1, since=18), ignorable] = 2**63 - 1


class FetchTopic(Message):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[TopicId, since(13), ignorable] = NO_TOPIC_ID
    partitions: Sequence[FetchPartition] = ()


class ForgottenTopic(Message):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[TopicId, since(13), ignorable] = NO_TOPIC_ID
    partitions: Sequence[Int32] = ()


class FetchRequest(Message, versions=(4, 18), flexible_since=12):
    cluster_id: Annotated[str | None, tagged(0, since=12), ignorable] = None
    replica_id: Annotated[Int32, until(14)] = -1  # -1: a consumer
    replica_state: Annotated[ReplicaState, tagged(1, since=15)] = ReplicaState()
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Int32 = 2**31 - 1
    isolation_level: Int8 = 0  # 0: read uncommitted, 1: read committed
    session_id: Annotated[Int32, since(7), ignorable] = 0
    # 0 opens a session, -1 closes it or does without
    session_epoch: Annotated[Int32, since(7), ignorable] = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Annotated[Sequence[ForgottenTopic], since(7)] = ()  # no longer part of the session
    rack_id: Annotated[str, since(11), ignorable] = ""


class EpochEndOffset(Message):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class LeaderIdAndEpoch(Message):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(Message):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransaction(Message):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class PartitionData(Message):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Int64 = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    # truncate to this point first
    diverging_epoch: Annotated[EpochEndOffset, tagged(0, since=12)] = EpochEndOffset()
    current_leader: Annotated[LeaderIdAndEpoch, tagged(1, since=12)] = LeaderIdAndEpoch()
    snapshot_id: Annotated[SnapshotId, tagged(2, since=12)] = SnapshotId()
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1  # read there, and take no records from here
    records: Records = None


class FetchableTopicResponse(Message):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[TopicId, since(13), ignorable] = NO_TOPIC_ID
    partitions: Sequence[PartitionData] = ()


class NodeEndpoint(Message):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None


class FetchResponse(Message, versions=(4, 18), flexible_since=12):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(7), ignorable] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Annotated[Sequence[NodeEndpoint], tagged(0, since=16)] = ()
