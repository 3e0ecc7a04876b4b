"""ListGroups: the groups that a broker coordinates.

1 has throttling; 3 is flexible; 4 filters by state (KIP-518); 5 by type (KIP-848).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, since


class ListGroupsRequest(Message, versions=(0, 5), flexible_since=3):
    states_filter: Annotated[Sequence[str], since(4)] = ()  # empty: all
    types_filter: Annotated[Sequence[str], since(5)] = ()  # empty: all


class ListedGroup(Message):
    group_id: str = ""
    protocol_type: str = ""
    group_state: Annotated[str, since(4), ignorable] = ""
    group_type: Annotated[str, since(5), ignorable] = ""


class ListGroupsResponse(Message, versions=(0, 5), flexible_since=3):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
    groups: Sequence[ListedGroup] = ()
