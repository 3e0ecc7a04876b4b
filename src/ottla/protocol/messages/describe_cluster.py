"""DescribeCluster: the cluster's id, controller and brokers (KIP-700).

1 can ask for controllers (KIP-919); 2 for fenced brokers (KIP-1073).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Message, since


class DescribeClusterRequest(Message, versions=(0, 2), flexible_since=0):
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1  # 1: brokers, 2: controllers
    include_fenced_brokers: Annotated[bool, since(2)] = False


class DescribeClusterBroker(Message):
    broker_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None
    is_fenced: Annotated[bool, since(2)] = False


class DescribeClusterResponse(Message, versions=(0, 2), flexible_since=0):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1  # 1: brokers, 2: controllers
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: Sequence[DescribeClusterBroker] = ()
    # bits of the operations allowed; least integer: not asked for
    cluster_authorized_operations: Int32 = -(2**31)
