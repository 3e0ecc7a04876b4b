"""Heartbeat: a member of a classic group says that it lives, and hears of rebalances.

1 has throttling; 3 knows static members (KIP-345); 4 is flexible.
"""

from __future__ import annotations

from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Message, ignorable, since


class HeartbeatRequest(Message, versions=(0, 4), flexible_since=4):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None


class HeartbeatResponse(Message, versions=(0, 4), flexible_since=4):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0
