"""OffsetCommit, OffsetFetch and OffsetDelete over the wire, in every version."""

from __future__ import annotations

import pytest

from calls import commit_request, create_topic, topic_id_of, unique_name
from group_calls import Member, commit_code, committed, fetch_request, find_coordinator
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from wire import WireClient

NO_TOPIC = TopicId(b"\x07" * 16)


@pytest.fixture
def group(client: WireClient) -> str:
    name = unique_name("group")
    find_coordinator(client, name)
    return name


@pytest.fixture
def topic(client: WireClient) -> str:
    return create_topic(client, partitions=3)


@pytest.mark.parametrize("version", range(2, 10))
def test_every_version_commits(client: WireClient, group: str, topic: str, version: int) -> None:
    nobody = Member(client, group)
    assert nobody.commit(topic, 40 + version, 1, version) == ErrorCode.NONE
    assert committed(client, group, topic, 1) == 40 + version
    assert committed(client, group, topic, 0) == -1


@pytest.mark.parametrize("version", range(1, 10))
def test_every_version_fetches(client: WireClient, group: str, topic: str, version: int) -> None:
    Member(client, group).commit(topic, 7)
    response = client.call(fetch_request(group, topic, 0, version), version)
    topics = response.topics if version < 8 else response.groups[0].topics
    (found,) = topics[0].partitions
    assert (found.committed_offset, found.metadata, found.error_code) == (7, "note", ErrorCode.NONE)
    assert found.committed_leader_epoch == (3 if version >= 5 else -1)


def test_the_newest_versions_have_topic_ids(client: WireClient, group: str, topic: str) -> None:
    topic_id = topic_id_of(client, topic)
    nobody = Member(client, group)
    response = client.call(nobody.commit_request("", 9, topic_id=topic_id), 10)
    assert (commit_code(response), response.topics[0].topic_id) == (ErrorCode.NONE, topic_id)
    (found,) = client.call(fetch_request(group, "", 0, 10, topic_id), 10).groups[0].topics
    assert (found.topic_id, found.partitions[0].committed_offset) == (topic_id, 9)
    everything = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group)])
    (found,) = client.call(everything, 10).groups[0].topics
    assert (found.topic_id, found.partitions[0].committed_offset) == (topic_id, 9)

    assert commit_code(client.call(nobody.commit_request("", 9, topic_id=NO_TOPIC), 10)) == (
        ErrorCode.UNKNOWN_TOPIC_ID
    )
    (found,) = client.call(fetch_request(group, "", 0, 10, NO_TOPIC), 10).groups[0].topics
    assert found.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(2, 10))
def test_all_topics_of_a_group(client: WireClient, group: str, topic: str, version: int) -> None:
    other = create_topic(client)
    for name, partition in ((topic, 0), (topic, 2), (other, 0)):
        client.call(commit_request(group, name, 5, partition=partition), 9)
    if version < 8:
        topics = client.call(OffsetFetchRequest(group, None), version).topics
    else:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group)])
        topics = client.call(request, version).groups[0].topics
    found = {(each.name, one.partition_index) for each in topics for one in each.partitions}
    assert found == {(topic, 0), (topic, 2), (other, 0)}


def test_many_groups_in_one_request(client: WireClient, topic: str) -> None:
    groups = [unique_name("group") for _ in range(5)]
    for number, group in enumerate(groups):
        find_coordinator(client, group)
        client.call(commit_request(group, topic, number), 9)
    asked = [OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group, topics=asked) for group in groups], require_stable=True
    )
    response = client.call(request, 9)
    assert [each.group_id for each in response.groups] == groups
    offsets = [each.topics[0].partitions[0].committed_offset for each in response.groups]
    assert offsets == list(range(5))


def test_each_partition_has_its_own_result(client: WireClient, group: str, topic: str) -> None:
    partitions = [OffsetCommitRequestPartition(0, 5), OffsetCommitRequestPartition(1, 5, -1, "x" * 4097)]
    missing = OffsetCommitRequestTopic("missing", partitions=[OffsetCommitRequestPartition(0, 5)])
    request = OffsetCommitRequest(
        group, topics=[OffsetCommitRequestTopic(topic, partitions=partitions), missing]
    )
    response = client.call(request, 9)
    codes = [each.error_code for one in response.topics for each in one.partitions]
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [committed(client, group, topic, index) for index in (0, 1)] == [5, -1]


def test_a_member_of_no_generation_cannot_commit(client: WireClient, group: str, topic: str) -> None:
    stranger = Member(client, group)
    stranger.id, stranger.generation = "stranger", 1
    assert stranger.commit(topic, 1, version=8) == ErrorCode.ILLEGAL_GENERATION
    assert stranger.commit(topic, 1, version=9) == ErrorCode.GROUP_ID_NOT_FOUND
    Member(client, group).commit(topic, 1)
    assert stranger.commit(topic, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(client, group, topic) == 1


def test_a_commit_that_fits_no_batch_is_refused_and_changes_nothing(client: WireClient, group: str) -> None:
    topic = create_topic(client, partitions=300)
    many = [OffsetCommitRequestPartition(index, 5, -1, "x" * 4000) for index in range(300)]
    request = OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=many)])
    assert commit_code(client.call(request, 9)) == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert committed(client, group, topic) == -1


def test_a_commit_of_very_many_partitions_is_taken_in_parts_and_told_as_one(
    client: WireClient, group: str
) -> None:
    topic, other = create_topic(client, partitions=1000), create_topic(client, partitions=2)
    many = [OffsetCommitRequestPartition(index, index + 5) for index in range(1002)]
    few = [OffsetCommitRequestPartition(index, 7, -1, "x" * 5000 * index) for index in range(2)]
    topics = [
        OffsetCommitRequestTopic(topic, partitions=many),
        OffsetCommitRequestTopic("missing", partitions=few[:1]),
        OffsetCommitRequestTopic(other, partitions=few),
    ]
    told = client.call(OffsetCommitRequest(group, topics=topics), 9).topics
    assert [(each.name, len(each.partitions)) for each in told] == [(topic, 1002), ("missing", 1), (other, 2)]
    codes = [each.error_code for each in told[0].partitions]
    assert codes == [ErrorCode.NONE] * 1000 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    codes = [each.error_code for each in told[2].partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert [committed(client, group, topic, index) for index in (0, 299, 300, 999)] == [5, 304, 305, 1004]


def test_offsets_are_deleted(client: WireClient, group: str, topic: str) -> None:
    asked = [OffsetDeleteRequestPartition(0), OffsetDeleteRequestPartition(1)]
    missing = OffsetDeleteRequestTopic("missing", [OffsetDeleteRequestPartition(0)])
    request = OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, asked), missing])
    assert client.call(request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    Member(client, group).commit(topic, 5)
    Member(client, group).commit(topic, 6, 2)
    response = client.call(request, 0)
    assert response.error_code == ErrorCode.NONE
    codes = [each.error_code for one in response.topics for each in one.partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    beyond = OffsetDeleteRequest(group, [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(99)])])
    (code,) = (each.error_code for each in client.call(beyond, 0).topics[0].partitions)
    assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.call(OffsetDeleteRequest(""), 0).error_code == ErrorCode.INVALID_GROUP_ID
    assert [committed(client, group, topic, index) for index in (0, 2)] == [-1, 6]


def test_a_topic_that_is_deleted_takes_its_offsets_along(client: WireClient, group: str, topic: str) -> None:
    Member(client, group).commit(topic, 5)
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(topic)]), 6)
    create_topic(client, name=topic)
    assert committed(client, group, topic) == -1
    Member(client, group).commit(topic, 1)
    assert committed(client, group, topic) == 1


def test_commits_of_one_piece_keep_their_order(client: WireClient, group: str, topic: str) -> None:
    requests = [(commit_request(group, topic, offset), 9) for offset in range(50)]
    client.send_together(*requests)
    assert {commit_code(client.receive()) for _ in requests} == {ErrorCode.NONE}
    assert committed(client, group, topic) == 49
