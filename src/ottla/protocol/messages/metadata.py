"""Metadata: the brokers, and the leaders and replicas of topics.

1 tells racks, the controller and internal topics; 2 the cluster id; 3 throttling; 4 can forbid auto-
creation; 5 offline replicas; 7 leader epochs; 8 authorized operations; 9 is flexible; 10 topic ids; 11
leaves the cluster's operations to DescribeCluster; 12 takes ids instead of names (KIP-516); 13 has an error
of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Message, ignorable, nullable_since, since, until


class MetadataRequestTopic(Message):
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    name: Annotated[str | None, nullable_since(10)] = ""


class MetadataRequest(Message, versions=(0, 13), flexible_since=9):
    # null asks for all; in version 0 the empty array does
    topics: Annotated[Sequence[MetadataRequestTopic] | None, nullable_since(1)] = ()
    allow_auto_topic_creation: Annotated[bool, since(4)] = True
    include_cluster_authorized_operations: Annotated[bool, since(8), until(10)] = False
    include_topic_authorized_operations: Annotated[bool, since(8)] = False


class MetadataResponseBroker(Message):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: Annotated[str | None, since(1), ignorable] = None


class MetadataResponsePartition(Message):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, since(7), ignorable] = -1
    replica_nodes: Sequence[Int32] = ()
    isr_nodes: Sequence[Int32] = ()
    offline_replicas: Annotated[Sequence[Int32], since(5), ignorable] = ()


class MetadataResponseTopic(Message):
    error_code: Int16 = 0
    name: Annotated[str | None, nullable_since(12)] = ""
    topic_id: Annotated[TopicId, since(10), ignorable] = NO_TOPIC_ID
    is_internal: Annotated[bool, since(1), ignorable] = False
    partitions: Sequence[MetadataResponsePartition] = ()
    # bits of the operations allowed; least integer: not asked for
    topic_authorized_operations: Annotated[Int32, since(8)] = -(2**31)


class MetadataResponse(Message, versions=(0, 13), flexible_since=9):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    brokers: Sequence[MetadataResponseBroker] = ()
    cluster_id: Annotated[str | None, since(2), ignorable] = None
    controller_id: Annotated[Int32, since(1), ignorable] = -1
    topics: Sequence[MetadataResponseTopic] = ()
    # bits of the operations allowed; least integer: not asked for
    cluster_authorized_operations: Annotated[Int32, since(8), until(10)] = -(2**31)
    error_code: Annotated[Int16, since(13), ignorable] = 0
