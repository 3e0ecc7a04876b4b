"""What a broker answers in a story, in words that two brokers can share.

A story is a function of a `Side`: it sends requests, and every answer to `ask` is a line of the transcript.
What a broker makes up (ids of members, producers and topics) is numbered in the order of its appearance, and
what says nothing about behaviour (times, texts, who leads which coordinator epoch) is left out.
"""

from __future__ import annotations

from typing import Any, TypeVar

from calls import LATEST, create_topic, unique_name
from compat.waiting import eventually
from ottla.model.errors import ErrorCode
from ottla.model.topics import NO_TOPIC_ID
from ottla.protocol.fields import Message
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from wire import _API_OF, WireClient

_WITHIN_S = 60
_LEFT_OUT = {
    "throttle_time_ms",
    "error_message",
    "client_host",
    "authorized_operations",
    "coordinator_epoch",
    "transaction_start_time_ms",
    "last_timestamp",
    "heartbeat_interval_ms",
    "log_append_time_ms",
    "log_start_offset",
}
_MADE_UP = {
    "member_id": "member",
    "leader": "member",
    "producer_id": "producer",
    "ongoing_txn_producer_id": "producer",
    "topic_id": "topic",
    "group_epoch": "epoch",  # Kafka begins with another one
    "assignment_epoch": "epoch",
    "member_epoch": "epoch",
}
_CODES = ("error_code", "partition_error_code")
_UNSETTLED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)

M = TypeVar("M", bound=Message)


class Side:
    """One broker, and what it has said."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.client = WireClient(bootstrap)
        self.transcript: list[tuple[str, Any]] = []
        self._labels: dict[str, str] = {}  # of the names that the story has made
        self._made_up: dict[str, dict[object, int]] = {}  # what the broker has, by kind, with its number
        self._clients = [self.client]
        offered = self.client.call(ApiVersionsRequest("test", "1"), 3).api_keys
        self.offered = {each.api_key: (each.min_version, each.max_version) for each in offered}

    def limit(self, other: Side) -> None:
        """Only versions that both offer are of use."""
        for key, (oldest, newest) in self.offered.items():
            others = other.offered.get(key, (0, -1))
            self.offered[key] = (max(oldest, others[0]), min(newest, others[1]))

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def connect(self) -> WireClient:
        """Another connection, for what waits while others act."""
        self._clients.append(WireClient(self.bootstrap))
        return self._clients[-1]

    # -- names ---------------------------------------------------------------------------------------------

    def name(self, label: str) -> str:
        """A new one that is `label` in the transcript."""
        made = unique_name(label)
        self._labels[made] = label
        return made

    def topic(self, label: str = "topic", partitions: int = 1) -> str:
        name = create_topic(self.client, self.name(label), partitions=partitions)
        assert eventually(lambda: self._has_leader(name), _WITHIN_S)
        return name

    def _has_leader(self, topic: str) -> bool:
        place = ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=LATEST)])
        return not any(codes_in(self.client.call(ListOffsetsRequest(topics=[place]), 5)))

    def group(self, label: str = "group") -> str:
        """A name whose coordinator is ready."""
        name = self.name(label)
        self._await(FindCoordinatorRequest(coordinator_keys=[name]), 4)
        self._await(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name)]), 8)
        return name

    def transactional_id(self, label: str = "id") -> str:
        name = self.name(label)
        self._await(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4)
        self._await(DescribeTransactionsRequest([name]), 0)
        self._await(InitProducerIdRequest(None, 60_000), 0)
        return name

    def _await(self, request: Message, version: int) -> None:
        assert eventually(
            lambda: not set(codes_in(self.client.call(request, version))) & set(_UNSETTLED), _WITHIN_S
        )

    # -- requests ------------------------------------------------------------------------------------------

    def versions(self, kind: type[Message], since: int = 0, until: int = 99) -> range:
        """Those that both brokers offer."""
        oldest, newest = self.offered[_API_OF[kind].key]
        return range(max(oldest, since), min(newest, until) + 1)

    def ask(self, what: str, request: Message, version: int, client: WireClient | None = None) -> Any:
        """The answer, which is noted."""
        answer = (client or self.client).call(request, version)
        self.note(f"{what}, {type(request).__name__.removesuffix('Request')} {version}", answer)
        return answer

    def note(self, what: str, answer: Any) -> None:
        self.transcript.append((what, self._told(answer)))

    # -- words ---------------------------------------------------------------------------------------------

    def _told(self, value: Any, field: str = "") -> Any:
        if isinstance(value, Message):
            return {
                name: self._told(getattr(value, name), name)
                for name in value.__field_defaults__
                if name not in _LEFT_OUT
            }
        if isinstance(value, (list, tuple)):
            return sorted((self._told(each, field) for each in value), key=repr)
        if isinstance(value, memoryview):
            value = bytes(value)
        if field in _CODES:
            return ErrorCode(value).name
        if field in _MADE_UP and value not in ("", None, 0, -1, -2, NO_TOPIC_ID, *self._labels):
            return self._number(value, _MADE_UP[field])
        if isinstance(value, bytes):
            for name, label in self._labels.items():
                value = value.replace(name.encode(), label.encode())
            return value
        return self._labels.get(value, value) if isinstance(value, str) else value

    def _number(self, value: object, kind: str) -> str:
        known = self._made_up.setdefault(kind, {})
        return f"{kind} {known.setdefault(value, len(known))}"


def codes_in(answer: Any) -> list[int]:
    if isinstance(answer, (list, tuple)):
        return [code for each in answer for code in codes_in(each)]
    if not isinstance(answer, Message):
        return []
    codes = []
    for name in answer.__field_defaults__:
        value = getattr(answer, name)
        codes += [value] if name in _CODES else codes_in(value)
    return codes
