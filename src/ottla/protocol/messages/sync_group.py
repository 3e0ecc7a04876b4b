"""SyncGroup: the leader of a classic group hands in the assignment, and every member receives its part.

1 has throttling; 3 knows static members (KIP-345); 4 is flexible; 5 names the protocol, so that a member
that believes in another one is refused (KIP-559).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, since


class SyncGroupRequestAssignment(Message):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Message, versions=(0, 5), flexible_since=4):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    protocol_type: Annotated[str | None, since(5), ignorable] = None
    protocol_name: Annotated[str | None, since(5), ignorable] = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()


class SyncGroupResponse(Message, versions=(0, 5), flexible_since=4):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[str | None, since(5), ignorable] = None
    protocol_name: Annotated[str | None, since(5), ignorable] = None
    assignment: bytes = b""
