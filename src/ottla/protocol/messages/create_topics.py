"""CreateTopics: new topics, with partitions, placement and settings.

4 lets the broker choose partition count and replication factor (KIP-464); 5 is flexible and answers with
the settings (KIP-525); 6 may answer THROTTLING_QUOTA_EXCEEDED (KIP-599); 7 answers with the topic id.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int8, Int16, Int32, Message, ignorable, since, tagged


class CreatableReplicaAssignment(Message):
    partition_index: Int32 = 0
    broker_ids: Sequence[Int32] = ()


class CreatableTopicConfig(Message):
    name: str = ""
    value: str | None = None


class CreatableTopic(Message):
    name: str = ""
    num_partitions: Int32 = 0  # -1: the broker's default, or as assigned
    replication_factor: Int16 = 0  # -1: the broker's default, or as assigned
    assignments: Sequence[CreatableReplicaAssignment] = ()
    configs: Sequence[CreatableTopicConfig] = ()


class CreateTopicsRequest(Message, versions=(2, 7), flexible_since=5):
    topics: Sequence[CreatableTopic] = ()
    timeout_ms: Int32 = 60000
    validate_only: bool = False


class CreatableTopicConfigs(Message):
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


class CreatableTopicResult(Message):
    name: str = ""
    topic_id: Annotated[TopicId, since(7), ignorable] = NO_TOPIC_ID
    error_code: Int16 = 0
    error_message: str | None = None
    topic_config_error_code: Annotated[Int16, tagged(0, since=5), ignorable] = 0  # why there are no configs
    num_partitions: Annotated[Int32, since(5), ignorable] = -1
    replication_factor: Annotated[Int16, since(5), ignorable] = -1
    configs: Annotated[Sequence[CreatableTopicConfigs] | None, since(5), ignorable] = None


class CreateTopicsResponse(Message, versions=(2, 7), flexible_since=5):
    throttle_time_ms: Int32 = 0
    topics: Sequence[CreatableTopicResult] = ()
