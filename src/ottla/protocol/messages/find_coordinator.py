"""FindCoordinator: the broker that coordinates a group or a transactional id.

1 has key types; 3 is flexible; 4 takes many keys (KIP-699); 5 may answer TRANSACTION_ABORTABLE (KIP-890); 6
knows share groups (KIP-932).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Message, ignorable, since, until


class FindCoordinatorRequest(Message, versions=(0, 6), flexible_since=3):
    key: Annotated[str, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0  # 0: group, 1: transaction, 2: share group
    coordinator_keys: Annotated[Sequence[str], since(4)] = ()


class Coordinator(Message):
    key: str = ""
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None


class FindCoordinatorResponse(Message, versions=(0, 6), flexible_since=3):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[str | None, since(1), until(3), ignorable] = None
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[Sequence[Coordinator], since(4)] = ()
