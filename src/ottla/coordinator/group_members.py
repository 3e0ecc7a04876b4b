"""A member of a classic group, and who is waiting for an answer on its behalf."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TypeAlias

from ottla.coordinator.group_records import MemberMetadata
from ottla.model.values import NamedTuple, dataclass
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

_MEMBER_ID_REQUIRED_SINCE = 4

Reply: TypeAlias = object
"""Whoever waits for an answer. The machine only keeps it and gives it back with the answer."""


class Caller(NamedTuple):
    """What is known of a request besides its content."""

    version: int
    client_id: str
    host: str  # as Java prints an address: /127.0.0.1


@dataclass(slots=True, eq=False)
class Member:
    id: str
    instance_id: str | None  # of static members (KIP-345)
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # (name, metadata), the best liked first
    assignment: bytes = b""  # of the last generation that was stable: it may still read that
    session_deadline_ms: int | None = None  # None: it waits for us, so it need not show that it lives
    is_new: bool = False  # it has not been part of a generation yet
    awaiting_join: Reply | None = None
    awaiting_sync: Reply | None = None

    @classmethod
    def joining(cls, member_id: str, request: JoinGroupRequest, caller: Caller) -> Member:
        return cls(
            id=member_id,
            instance_id=request.group_instance_id,
            client_id=caller.client_id,
            client_host=caller.host,
            rebalance_timeout_ms=rebalance_timeout_ms(request),
            session_timeout_ms=request.session_timeout_ms,
            protocols=plain(request.protocols),
            is_new=True,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol: str | None) -> Member:
        timeout_ms = record.rebalance_timeout_ms
        return cls(
            id=record.member_id,
            instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=timeout_ms if timeout_ms >= 0 else record.session_timeout_ms,
            session_timeout_ms=record.session_timeout_ms,
            protocols=((protocol or "", record.subscription),),
            assignment=record.assignment,
        )

    def to_record(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            self.id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: Container[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def is_waiting(self) -> bool:
        return self.awaiting_join is not None or self.awaiting_sync is not None


def plain(protocols: Sequence[JoinGroupRequestProtocol]) -> tuple[tuple[str, bytes], ...]:
    """As Kafka's collection keeps them: the first of each name."""
    named: dict[str, bytes] = {}
    for protocol in protocols:
        named.setdefault(protocol.name, bytes(protocol.metadata))
    return tuple(named.items())


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Version 0 has none of its own."""
    if request.rebalance_timeout_ms >= 0:
        return request.rebalance_timeout_ms
    return request.session_timeout_ms


def needs_member_id(request: JoinGroupRequest, caller: Caller) -> bool:
    """Whether the member must first hear of its id, and join with it then.

    One that is gone before must not hold up the others (KIP-394). Static members are known by their own id.
    """
    is_unknown = not request.member_id and request.group_instance_id is None
    return is_unknown and caller.version >= _MEMBER_ID_REQUIRED_SINCE
