"""DescribeGroups: state and members of classic groups.

1 has throttling; 3 tells authorized operations; 4 instance ids of static members (KIP-345); 5 is flexible; 6
refuses groups that do not exist, with a text (KIP-1043).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, since


class DescribeGroupsRequest(Message, versions=(0, 6), flexible_since=5):
    groups: Sequence[str] = ()
    include_authorized_operations: Annotated[bool, since(3)] = False


class DescribedGroupMember(Message):
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(4), ignorable] = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: Annotated[str | None, since(6)] = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""  # the protocol that the members voted for
    members: Sequence[DescribedGroupMember] = ()
    # bits of the operations allowed; least integer: not asked for
    authorized_operations: Annotated[Int32, since(3)] = -(2**31)


class DescribeGroupsResponse(Message, versions=(0, 6), flexible_since=5):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    groups: Sequence[DescribedGroup] = ()
