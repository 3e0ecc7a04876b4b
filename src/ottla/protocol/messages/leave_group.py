"""LeaveGroup: members leave a classic group.

1 has throttling; 3 takes many members, by id or instance id (KIP-345); 4 is flexible; 5 carries the reason
(KIP-800).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, since, until


class MemberIdentity(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: Annotated[str | None, since(5), ignorable] = None


class LeaveGroupRequest(Message, versions=(0, 5), flexible_since=4):
    group_id: str = ""
    member_id: Annotated[str, until(2)] = ""
    members: Annotated[Sequence[MemberIdentity], since(3)] = ()


class MemberResponse(Message):
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: Int16 = 0


class LeaveGroupResponse(Message, versions=(0, 5), flexible_since=4):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    members: Annotated[Sequence[MemberResponse], since(3)] = ()
