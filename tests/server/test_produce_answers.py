"""Answers that are written straight into bytes are those that the declared message gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.topics import TopicId
from ottla.protocol.apis import PRODUCE
from ottla.protocol.headers import encode_response
from ottla.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.server.produce_answers import encode_taken
from ottla.server.produce_requests import ProducePart, ProduceTopic

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTS = st.lists(st.tuples(INT32, INT64, INT64, INT64), max_size=200)
TOPICS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
        st.binary(min_size=16, max_size=16).map(TopicId),
        PARTS,
    ),
    max_size=3,
)


def part(index: int, base_offset: int, time_ms: int, log_start_offset: int) -> ProducePart:
    made = ProducePart(index, None)
    made.base_offset = base_offset
    made.time_ms = time_ms
    made.log_start_offset = log_start_offset
    return made


@pytest.mark.parametrize("version", range(3, 14))
@given(topics=TOPICS, correlation_id=INT32, throttle_ms=st.integers(0, 2**31 - 1))
def test_they_are_the_bytes_of_the_message(
    version: int,
    topics: list[tuple[str, TopicId, list[tuple[int, int, int, int]]]],
    correlation_id: int,
    throttle_ms: int,
) -> None:
    message = ProduceResponse(
        [
            TopicProduceResponse(
                name,
                topic_id,
                [
                    PartitionProduceResponse(index, 0, base, time_ms, start)
                    for index, base, time_ms, start in parts
                ],
            )
            for name, topic_id, parts in topics
        ],
        throttle_ms,
    )
    expected = b"".join(encode_response(PRODUCE, version, correlation_id, message))  # type: ignore[arg-type]
    taken = [
        ProduceTopic(name, topic_id, [part(*each) for each in parts]) for name, topic_id, parts in topics
    ]
    assert encode_taken(version, correlation_id, taken, throttle_ms) == expected
