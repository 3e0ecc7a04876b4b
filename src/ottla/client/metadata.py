"""What a client knows of its cluster, how old that is, and when to ask again. Pure: time is an argument.

Only topics that were asked for are kept. An answer that is older than what is known already (a leader epoch
went back on the same topic) does not replace it: brokers learn of a new leader at different times (KIP-320).
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from ottla.client.backoff import Backoff
from ottla.client.cluster_view import Broker, ClusterView, Partition, Topic
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID
from ottla.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class Metadata:
    def __init__(self, max_age_ms: int, backoff: Backoff, *, auto_create: bool) -> None:
        self.view = ClusterView()
        self.problems: dict[str, int] = {}  # error codes of wanted topics, as the last answer told them
        self.version = 0  # counts the answers taken in
        self._wanted: set[str] = set()
        self._auto_create = auto_create
        self._max_age_ms = max_age_ms
        self._backoff = backoff
        self._taken_at_ms: int | None = None
        self._is_stale = True  # somebody met an error that a new view may explain
        self.refusals = 0  # answers in a row that told a problem of a wanted topic
        self._failures = 0  # in a row
        self._not_before_ms = 0
        self._in_flight = False

    # -- when ----------------------------------------------------------------------------------------------

    def want(self, topics: Set[str]) -> None:
        """These, and no others any more."""
        if topics == self._wanted:
            return
        if not topics <= self._wanted:
            self.ask_again()
            if not self._failures:
                self._not_before_ms = 0  # the pause is meant for questions that were asked already
        self._wanted = set(topics)

    def ask_again(self) -> None:
        """The view is not up to date: a leader has moved, a topic is new or gone."""
        self._is_stale = True

    def next_request_ms(self, now_ms: int) -> int | None:
        """When to send the next request; None while one is under way."""
        if self._in_flight:
            return None
        due_ms = (
            now_ms if self._is_stale or self._taken_at_ms is None else self._taken_at_ms + self._max_age_ms
        )
        return max(due_ms, self._not_before_ms)

    def request(self) -> MetadataRequest:
        self._in_flight = True
        self._is_stale = False
        return metadata_request(sorted(self._wanted), auto_create=self._auto_create)

    # -- answers -------------------------------------------------------------------------------------------

    def failed(self, now_ms: int) -> None:
        self._in_flight = False
        self._is_stale = True
        self._failures += 1
        self._not_before_ms = now_ms + self._backoff.pause_ms(self._failures)

    def take(self, response: MetadataResponse, now_ms: int) -> None:
        self._in_flight = False
        self._taken_at_ms = now_ms
        self.version += 1
        self.problems = {
            topic.name: topic.error_code for topic in response.topics if topic.error_code and topic.name
        }
        self.view = view_of(response, self.view)
        self.refusals = self.refusals + 1 if self.problems else 0
        unsettled = any(
            partition.leader is None for topic in self.view.topics.values() for partition in topic.partitions
        )
        if self.problems or unsettled:
            self._is_stale = True
            self._failures += 1
            self._not_before_ms = now_ms + self._backoff.pause_ms(self._failures)
        else:
            self._failures = 0
            self._not_before_ms = now_ms + self._backoff.pause_ms(1)


def metadata_request(topics: Iterable[str] | None, *, auto_create: bool = False) -> MetadataRequest:
    """For `topics`; None asks for all."""
    wanted = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=wanted, allow_auto_topic_creation=auto_create)


def view_of(response: MetadataResponse, before: ClusterView | None = None) -> ClusterView:
    brokers = {
        broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    topics = {}
    for topic in response.topics:
        if topic.name and not topic.error_code:
            known = before.topics.get(topic.name) if before is not None else None
            topics[topic.name] = _topic(topic, known)
        elif topic.name and before is not None and topic.name in before.topics and _is_passing(topic):
            topics[topic.name] = before.topics[topic.name]
    return ClusterView(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        brokers=brokers,
        topics=topics,
        names={topic.id: name for name, topic in topics.items() if topic.id != NO_TOPIC_ID},
    )


def _is_passing(topic: MetadataResponseTopic) -> bool:
    return topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE


def _topic(topic: MetadataResponseTopic, known: Topic | None) -> Topic:
    assert topic.name is not None
    partitions = [
        _partition(each) for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    ]
    if known is not None and known.id == topic.topic_id:
        for index, partition in enumerate(partitions[: len(known.partitions)]):
            old = known.partitions[index]
            if old.leader_epoch > partition.leader_epoch >= 0:
                partitions[index] = old
    return Topic(topic.name, topic.topic_id, topic.is_internal, tuple(partitions))


def _partition(partition: MetadataResponsePartition) -> Partition:
    return Partition(
        index=partition.partition_index,
        leader=partition.leader_id if partition.leader_id >= 0 else None,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        isr=tuple(partition.isr_nodes),
        offline=tuple(partition.offline_replicas),
    )
