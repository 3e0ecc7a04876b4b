"""DescribeTopicPartitions: topics in order of name, page by page."""

from __future__ import annotations

from pathlib import Path

import pytest

from calls import create_topic, topic_id_of, unique_name
from in_process import running_broker
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from wire import WireClient


def page(
    client: WireClient, names: list[str], limit: int, cursor: Cursor | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest([TopicRequest(name) for name in names], limit, cursor)
    response = client.call(request, 0)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def shown(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics]


@pytest.fixture
def names(client: WireClient) -> list[str]:
    """Three topics of three partitions, in order."""
    prefix = unique_name("paged")
    return [create_topic(client, f"{prefix}-{letter}", partitions=3) for letter in "abc"]


def test_a_topic_with_all_there_is_to_tell(client: WireClient, names: list[str]) -> None:
    response = page(client, names[:1], 100)
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (ErrorCode.NONE, names[0], False)
    assert topic.topic_id == topic_id_of(client, names[0])
    assert topic.topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
    assert [
        (each.error_code, each.partition_index, each.leader_id, each.leader_epoch, each.isr_nodes)
        for each in topic.partitions
    ] == [(ErrorCode.NONE, index, 1, 0, (1,)) for index in range(3)]
    assert response.next_cursor is None


def test_topics_come_in_order_of_name(client: WireClient, names: list[str]) -> None:
    response = page(client, [names[2], names[0], names[1], names[0]], 100)
    assert [topic.name for topic in response.topics] == names


@pytest.mark.parametrize("limit", range(1, 11))
def test_pages_of_any_size_show_everything_once(client: WireClient, names: list[str], limit: int) -> None:
    seen: list[tuple[str | None, int]] = []
    cursor = None
    for _ in range(20):
        response = page(client, names, limit, cursor)
        shown_now = [(name, index) for name, indexes in shown(response) for index in indexes]
        assert len(shown_now) <= limit
        seen += shown_now
        cursor = response.next_cursor
        if cursor is None:
            break
    assert seen == [(name, index) for name in names for index in range(3)]


def test_the_cursor_says_where_the_next_page_starts(client: WireClient, names: list[str]) -> None:
    response = page(client, names, 4)
    assert shown(response) == [(names[0], [0, 1, 2]), (names[1], [0])]
    assert response.next_cursor is not None
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == (names[1], 1)
    response = page(client, names, 3)
    assert response.next_cursor is not None
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == (names[1], 0)


def test_a_cursor_behind_everything(client: WireClient, names: list[str]) -> None:
    assert page(client, names, 10, Cursor(names[2] + "z", 0)).topics == ()
    response = page(client, names, 10, Cursor(names[2], 99))
    assert shown(response) == [(names[2], [])]


def test_no_topics_means_all(client: WireClient, names: list[str]) -> None:
    found = [topic.name for topic in page(client, [], 2_000).topics]
    assert set(names) <= set(found)
    assert found == sorted(str(name) for name in found)


def test_topics_that_are_not_there(client: WireClient, names: list[str]) -> None:
    response = page(client, ["a/b", names[0], "nowhere"], 10)
    assert {topic.name: ErrorCode(topic.error_code) for topic in response.topics} == {
        "a/b": ErrorCode.INVALID_TOPIC_EXCEPTION,
        names[0]: ErrorCode.NONE,
        "nowhere": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_a_cursor_before_everything_is_refused(client: WireClient, names: list[str]) -> None:
    for cursor in (Cursor(names[0], -1), Cursor("", -5)):
        response = page(client, names, 10, cursor)
        assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST] * 3
        assert [topic.name for topic in response.topics] == names


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_at_least_one_partition(client: WireClient, names: list[str], limit: int) -> None:
    assert shown(page(client, names, limit)) == [(names[0], [0])]


def test_the_brokers_limit_bounds_a_page(tmp_path: Path) -> None:
    settings = {"max.request.partition.size.limit": "2"}
    with running_broker(tmp_path, settings) as running, WireClient(running.bootstrap) as client:
        name = create_topic(client, partitions=3)
        assert shown(page(client, [], 1_000)) == [(name, [0, 1])]
