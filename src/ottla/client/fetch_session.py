"""An incremental fetch session with one broker (KIP-227): only what changed is asked for. Pure.

The first request names every partition and opens the session; the following ones name those whose offsets
moved, and those to forget. When a broker has lost the session, the next request is a full one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID, TopicId, TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

_FIRST_EPOCH = 0
_EPOCH_END = 2**31 - 1

_LOST = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)


class Wanted(NamedTuple):
    """What a partition is asked for."""

    topic_id: TopicId
    offset: int
    leader_epoch: int
    bytes_max: int


class FetchSession:
    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = _FIRST_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}  # as the broker has them

    @property
    def names_ids(self) -> bool:
        return all(wanted.topic_id != NO_TOPIC_ID for wanted in self._known.values())

    def next_request(
        self, wanted: Mapping[TopicPartition, Wanted]
    ) -> tuple[list[FetchTopic], list[ForgottenTopic]]:
        """What to name so that the broker serves exactly `wanted`."""
        if self.epoch == _FIRST_EPOCH:
            self._known = dict(wanted)
            return _topics(wanted), []
        changed = {target: each for target, each in wanted.items() if self._known.get(target) != each}
        # A topic that was created anew has another id: the old one must go from the session.
        gone = {
            target: known
            for target, known in self._known.items()
            if target not in wanted or wanted[target].topic_id != known.topic_id
        }
        self._known = dict(wanted)
        return _topics(changed), _forgotten(gone)

    def answered(self, error_code: int, session_id: int) -> None:
        if error_code:
            if error_code in _LOST:
                self.reset()
            return
        if session_id == 0:
            self.reset()  # the broker keeps no session for us
            return
        if self.session_id == 0:
            self.session_id = session_id
        self.epoch = self.epoch + 1 if self.epoch < _EPOCH_END else 1

    def moved(self, target: TopicPartition) -> None:
        """The broker has an error for it: name it again next time."""
        self._known.pop(target, None)

    def reset(self) -> None:
        self.session_id = 0
        self.epoch = _FIRST_EPOCH
        self._known = {}


def _topics(wanted: Mapping[TopicPartition, Wanted]) -> list[FetchTopic]:
    by_topic: dict[tuple[str, TopicId], list[FetchPartition]] = {}
    for target, each in wanted.items():
        by_topic.setdefault((target.topic, each.topic_id), []).append(
            FetchPartition(
                partition=target.partition,
                current_leader_epoch=each.leader_epoch,
                fetch_offset=each.offset,
                partition_max_bytes=each.bytes_max,
            )
        )
    return [FetchTopic(topic, topic_id, partitions) for (topic, topic_id), partitions in by_topic.items()]


def _forgotten(gone: Mapping[TopicPartition, Wanted]) -> list[ForgottenTopic]:
    by_topic: dict[tuple[str, TopicId], list[int]] = {}
    for target, each in gone.items():
        by_topic.setdefault((target.topic, each.topic_id), []).append(target.partition)
    return [ForgottenTopic(topic, topic_id, partitions) for (topic, topic_id), partitions in by_topic.items()]
