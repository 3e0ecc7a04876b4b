"""Answers to OffsetCommit, written straight into bytes, are those that the declared message gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.topics import TopicId
from ottla.protocol.apis import OFFSET_COMMIT
from ottla.protocol.headers import encode_response
from ottla.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.server.offset_commit_answers import encode_codes
from ottla.server.offset_commit_requests import CommitPart, CommitTopic

INT32 = st.integers(-(2**31), 2**31 - 1)
TOPICS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
        st.binary(min_size=16, max_size=16).map(TopicId),
        st.lists(st.tuples(INT32, st.integers(-1, 200)), max_size=200),
    ),
    max_size=3,
)


def part(index: int, code: int) -> CommitPart:
    made = CommitPart(index, 0, -1, None)
    made.code = code
    return made


@pytest.mark.parametrize("version", range(2, 11))
@given(topics=TOPICS, correlation_id=INT32)
def test_they_are_the_bytes_of_the_message(
    version: int, topics: list[tuple[str, TopicId, list[tuple[int, int]]]], correlation_id: int
) -> None:
    message = OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name, topic_id, [OffsetCommitResponsePartition(index, code) for index, code in parts]
            )
            for name, topic_id, parts in topics
        ]
    )
    expected = b"".join(encode_response(OFFSET_COMMIT, version, correlation_id, message))  # type: ignore[arg-type]
    committed = [
        CommitTopic(name, topic_id, [part(*each) for each in parts]) for name, topic_id, parts in topics
    ]
    assert encode_codes(version, correlation_id, committed) == expected
