"""ListConfigResources 0-1: names of everything that has settings (KIP-1142).

Version 0 lists client metrics only, of which there are none; from 1 on a client says which types it wants,
and an empty list means all. Here that is topics (2) and brokers (4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.configs import ResourceType as ConfigResourceType
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from ottla.security.authorizer import CLUSTER_NAME
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.services import Services

_TYPES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}


def handle(exchange: Exchange[ListConfigResourcesRequest], services: Services) -> ListConfigResourcesResponse:
    if not exchange.may(CLUSTER_NAME):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if exchange.version == 0:
        return ListConfigResourcesResponse()
    wanted = set(exchange.request.resource_types) or set(_TYPES)
    if not wanted <= set(_TYPES):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    image = services.controller.image
    resources = []
    if ConfigResourceType.TOPIC in wanted:
        resources += [ConfigResource(name, ConfigResourceType.TOPIC) for name in image.topics]
    if ConfigResourceType.BROKER in wanted:
        resources += [ConfigResource(str(broker), ConfigResourceType.BROKER) for broker in image.brokers]
    return ListConfigResourcesResponse(config_resources=resources)
