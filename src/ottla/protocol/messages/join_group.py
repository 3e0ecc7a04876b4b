"""JoinGroup: a member enters a classic group, or takes part in its rebalance.

1 has a rebalance timeout of its own; 4 makes new members join twice (KIP-394); 5 knows static members
(KIP-345); 6 is flexible; 7 tells the protocol type (KIP-559); 8 carries the reason (KIP-800); 9 can tell a
leader that there is nothing to assign (KIP-814).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, nullable_since, since


class JoinGroupRequestProtocol(Message):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Message, versions=(0, 9), flexible_since=6):
    group_id: str = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, since(1), ignorable] = -1  # -1: the session timeout
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5)] = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()  # the one that the member likes best comes first
    reason: Annotated[str | None, since(8), ignorable] = None


class JoinGroupResponseMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(5), ignorable] = None
    metadata: bytes = b""


class JoinGroupResponse(Message, versions=(0, 9), flexible_since=6):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, since(7), ignorable] = None
    protocol_name: Annotated[str | None, nullable_since(7)] = ""
    leader: str = ""
    skip_assignment: Annotated[bool, since(9)] = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()  # for the leader only
