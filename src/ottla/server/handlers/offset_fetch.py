"""OffsetFetch 1-10: how far groups have read; -1 where nothing is committed.

- Up to 7 for one group, from 8 on for many, each with an error of its own. No topics (2+): all there are.
  What concerns the group is said for the group (2+), and up to 7 for each partition that was asked for.
- From 7 on the client can ask for stable offsets: UNSTABLE_OFFSET_COMMIT where a transaction is open.
- From 9 on members of consumer groups (KIP-848) tell their epoch, and old ones are refused.
- From 10 on topics are named by id. What the peer may not describe is refused, or left out of all.
- The answer leaves when the commits it tells of are durable.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.coordinator.offsets import Place
from ottla.model.errors import ErrorCode, Refused
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ottla.security.authorizer import Operation, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.group_service import Groups
from ottla.server.group_topics import topic_name
from ottla.server.long_requests import PartOf, Work

if TYPE_CHECKING:
    from ottla.server.services import Services

_MANY_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NONE = -1

T = TypeVar("T")
Slices = Generator[None, None, T]


def handle(exchange: Exchange[OffsetFetchRequest], services: Services) -> None:
    asked = [_Asked(exchange, services, group) for group in _groups(exchange)]

    groups: list[OffsetFetchResponseGroup] = []

    def look() -> Work:
        for each in asked:
            told = yield from each.response()
            groups.append(told)
        services.groups.when_durable([each.partition for each in asked if each.partition is not None], answer)

    def answer(refusal: Refused | None) -> None:
        if not exchange.abandoned:
            told = groups if refusal is None else [each.refused(refusal.code) for each in asked]
            exchange.answer(_response(exchange.version, told))

    services.long_requests.begin(PartOf(exchange), look())


def _groups(exchange: Exchange[OffsetFetchRequest]) -> Sequence[OffsetFetchRequestGroup]:
    request = exchange.request
    if exchange.version >= _MANY_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(request.group_id, topics=topics)]


class _Asked:
    """What is asked of one group."""

    def __init__(
        self, exchange: Exchange[OffsetFetchRequest], services: Services, group: OffsetFetchRequestGroup
    ) -> None:
        self.partition: Groups | None = None  # where the group is
        self._exchange = exchange
        self._services = services
        self._group = group
        self._code = ErrorCode.NONE
        try:
            if not exchange.may(group.group_id):
                raise Refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            partition = services.groups.topic.find(group.group_id)
            partition.machine.check_fetch(group.group_id, group.member_id, group.member_epoch)
            self.partition = partition
        except Refused as refusal:
            self._code = refusal.code

    def refused(self, code: ErrorCode) -> OffsetFetchResponseGroup:
        """With what was wrong before, or else `code`."""
        code = self._code or code
        return OffsetFetchResponseGroup(self._group.group_id, self._refused_topics(code), code)

    def response(self) -> Slices[OffsetFetchResponseGroup]:
        """To be told when all of it is durable."""
        yield None
        if self._code is not ErrorCode.NONE:
            return self.refused(self._code)
        topics = yield from (
            self._all_topics() if self._group.topics is None else self._asked_topics(self._group.topics)
        )
        return OffsetFetchResponseGroup(self._group.group_id, topics)

    def _refused_topics(self, code: ErrorCode) -> list[OffsetFetchResponseTopics]:
        """Version 1 has no other place for the error. Up to 7 clients look there too, and some nowhere else:
        aiokafka 0.14 would believe that nothing is committed. So these versions say it twice, unlike Kafka.
        """
        if self._exchange.version >= _MANY_GROUPS_SINCE:
            return []
        return [_refused_topic(topic, code) for topic in self._group.topics or ()]

    def _asked_topics(
        self, topics: Sequence[OffsetFetchRequestTopics]
    ) -> Slices[list[OffsetFetchResponseTopics]]:
        found = []
        for topic in topics:
            try:
                name = topic_name(
                    self._exchange, self._services, Operation.DESCRIBE, topic.name, topic.topic_id
                )
            except Refused as refusal:
                if refusal.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    found.append(_refused_topic(topic, refusal.code))
                    continue
                name = topic.name  # it has no offsets, which is no error
            partitions = yield from self._partitions(name, topic.partition_indexes)
            found.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
        return found

    def _all_topics(self) -> Slices[list[OffsetFetchResponseTopics]]:
        assert self.partition is not None
        topics = self._services.controller.image.topics
        found = []
        known = self.partition.machine.offsets.of_group(self._group.group_id)
        for name, partitions in [(name, list(partitions)) for name, partitions in known.items()]:
            topic = topics.get(name)
            if topic is None or not self._may_describe(name):
                continue
            told = yield from self._partitions(name, partitions)
            found.append(OffsetFetchResponseTopics(name, topic.id, told))
        return found

    def _partitions(self, topic: str, indexes: Iterable[int]) -> Slices[list[OffsetFetchResponsePartitions]]:
        told = []
        for index in indexes:
            yield None
            told.append(self._partition(topic, index))
        return told

    def _may_describe(self, topic: str) -> bool:
        connection = self._exchange.connection
        return self._services.may(connection, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _partition(self, topic: str, index: int) -> OffsetFetchResponsePartitions:
        assert self.partition is not None
        offsets = self.partition.machine.offsets
        place = Place(self._group.group_id, topic, index)
        if self._exchange.request.require_stable and offsets.is_open(place):
            return _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        value = offsets.get(place)
        if value is None:
            return _no_offset(index, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata)


def _refused_topic(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [_no_offset(index, code) for index in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions)


def _no_offset(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, _NONE, _NONE, "", code)


def _response(version: int, groups: Sequence[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
    if version >= _MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.metadata,
                    each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)
