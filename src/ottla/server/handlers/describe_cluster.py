"""DescribeCluster 0-2: the brokers and the controller.

From 1 on a client says whether it asked for brokers or controllers; only brokers answer here. From 2 on it
may ask for fenced brokers too; a broker that is registered is never fenced here. As with Metadata everybody
may know the brokers; what one may do to the cluster is told to those who may describe it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ottla.security.authorizer import CLUSTER_NAME, ResourceType
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services

_BROKERS = 1
_CONTROLLERS = 2
_NOT_ASKED = -(2**31)


def handle(exchange: Exchange[DescribeClusterRequest], services: Services) -> DescribeClusterResponse:
    request = exchange.request
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="this listener is a broker's; ask it for brokers (endpoint type 1)",
            endpoint_type=request.endpoint_type if known else _BROKERS,
        )
    operations = _NOT_ASKED
    if request.include_cluster_authorized_operations:
        operations = 0
        if exchange.may(CLUSTER_NAME):
            operations = services.operations_allowed(exchange.connection, ResourceType.CLUSTER, CLUSTER_NAME)
    image = services.controller.image
    return DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id, host, port, rack)
            for broker_id, host, port, rack in services.brokers(exchange.connection.listener)
        ],
        cluster_authorized_operations=operations,
    )
