"""Members of groups as the wire sees them: each call is one request and its answer, nothing is retried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from wire import WireClient

NEWEST_NAMED = 9  # of OffsetCommit and OffsetFetch; from 10 on they have topic ids


def find_coordinator(client: WireClient, group: str) -> None:
    """Makes the topic of the groups, if it was not there."""
    (found,) = client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators
    assert found.error_code == ErrorCode.NONE, found


class Member:
    """One connection of one member."""

    def __init__(self, client: WireClient, group: str, instance_id: str | None = None) -> None:
        self.client = client
        self.group = group
        self.instance_id = instance_id
        self.id = ""
        self.generation = -1

    # -- joining -------------------------------------------------------------------------------------------

    def send_join(self, version: int = 9, protocols: Sequence[str] = ("range",)) -> None:
        request = JoinGroupRequest(
            self.group,
            session_timeout_ms=600_000,  # no test waits for it
            rebalance_timeout_ms=60_000,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name, b"metadata") for name in protocols],
        )
        self.client.send(request, version)

    def receive_join(self) -> JoinGroupResponse:
        response = self.client.receive()
        assert isinstance(response, JoinGroupResponse)
        self.id, self.generation = response.member_id, response.generation_id
        return response

    def join(self, version: int = 9) -> JoinGroupResponse:
        """Until it is in; the others must join meanwhile, if there are any."""
        self.send_join(version)
        response = self.receive_join()
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.send_join(version)
            response = self.receive_join()
        assert response.error_code == ErrorCode.NONE, response
        return response

    def sync_request(self, assignments: dict[str, bytes] | None = None) -> SyncGroupRequest:
        return SyncGroupRequest(
            self.group,
            self.generation,
            self.id,
            self.instance_id,
            "consumer",
            "range",
            [SyncGroupRequestAssignment(*each) for each in (assignments or {}).items()],
        )

    def sync(self, assignments: dict[str, bytes] | None = None, version: int = 5) -> Any:
        return self.client.call(self.sync_request(assignments), version)

    def settle(self, version: int = 9) -> None:
        """Becomes the only member of a stable group."""
        self.join(version)
        assert self.sync({self.id: b"all"}).error_code == ErrorCode.NONE

    # -- being in it ---------------------------------------------------------------------------------------

    def heartbeat(self, version: int = 4) -> ErrorCode:
        request = HeartbeatRequest(self.group, self.generation, self.id, self.instance_id)
        return ErrorCode(self.client.call(request, version).error_code)

    def leave(self, version: int = 5) -> Any:
        if version < 3:
            return self.client.call(LeaveGroupRequest(self.group, self.id), version)
        identity = MemberIdentity(self.id, self.instance_id)
        return self.client.call(LeaveGroupRequest(self.group, members=[identity]), version)

    def commit_request(
        self, topic: str, offset: int, partition: int = 0, topic_id: TopicId = NO_TOPIC_ID
    ) -> OffsetCommitRequest:
        committed = OffsetCommitRequestPartition(partition, offset, 3, "note")
        return OffsetCommitRequest(
            self.group,
            self.generation,
            self.id,
            self.instance_id,
            topics=[OffsetCommitRequestTopic(topic, topic_id, [committed])],
        )

    def commit(self, topic: str, offset: int, partition: int = 0, version: int = NEWEST_NAMED) -> ErrorCode:
        return commit_code(self.client.call(self.commit_request(topic, offset, partition), version))


def commit_code(response: Any) -> ErrorCode:
    """Of the one partition."""
    return ErrorCode(response.topics[0].partitions[0].error_code)


def fetch_request(
    group: str, topic: str, partition: int, version: int, topic_id: TopicId = NO_TOPIC_ID
) -> OffsetFetchRequest:
    if version < 8:
        return OffsetFetchRequest(group, [OffsetFetchRequestTopic(topic, [partition])])
    topics = [OffsetFetchRequestTopics(topic, topic_id, [partition])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=topics)])


def committed(
    client: WireClient, group: str, topic: str, partition: int = 0, version: int = NEWEST_NAMED
) -> int:
    """-1 where nothing is."""
    response = client.call(fetch_request(group, topic, partition, version), version)
    answer = response if version < 8 else response.groups[0]
    assert answer.error_code == ErrorCode.NONE, response
    (found,) = answer.topics[0].partitions
    assert found.error_code == ErrorCode.NONE, response
    return int(found.committed_offset)
