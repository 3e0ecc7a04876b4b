"""DeleteGroups: forgets groups without members, and their offsets (KIP-229). 2 is flexible."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int16, Int32, Message


class DeleteGroupsRequest(Message, versions=(0, 2), flexible_since=2):
    groups_names: Sequence[str] = ()


class DeletableGroupResult(Message):
    group_id: str = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Message, versions=(0, 2), flexible_since=2):
    throttle_time_ms: Int32 = 0
    results: Sequence[DeletableGroupResult] = ()
