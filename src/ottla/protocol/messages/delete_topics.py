"""DeleteTopics: topics to delete, by name or, from version 6, by id.

4 is flexible; 5 has error messages and may answer THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.fields import Int16, Int32, Message, ignorable, nullable_since, since, until


class DeleteTopicState(Message):
    """Either a name or an id."""

    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


class DeleteTopicsRequest(Message, versions=(1, 6), flexible_since=4):
    topics: Annotated[Sequence[DeleteTopicState], since(6)] = ()
    topic_names: Annotated[Sequence[str], until(5), ignorable] = ()
    timeout_ms: Int32 = 0


class DeletableTopicResult(Message):
    name: Annotated[str | None, nullable_since(6)] = ""
    topic_id: Annotated[TopicId, since(6), ignorable] = NO_TOPIC_ID
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(5), ignorable] = None


class DeleteTopicsResponse(Message, versions=(1, 6), flexible_since=4):
    throttle_time_ms: Int32 = 0
    responses: Sequence[DeletableTopicResult] = ()
