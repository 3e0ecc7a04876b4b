"""ApiVersions 0-4: what this broker speaks.

- The list comes from the routes; it does not change while a broker runs, so it is made once.
- An unknown version of ApiVersions itself is answered in version 0 with UNSUPPORTED_VERSION and the list
  (KIP-511), so that a newer client can step down.
- From 3 on the client tells its name and version, which must be harmless in a log line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.model.errors import ErrorCode
from ottla.protocol import apis
from ottla.protocol.headers import encode_response
from ottla.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ottla.server.exchange import Exchange

if TYPE_CHECKING:
    from ottla.server.routes import Route
    from ottla.server.services import Services

_LEVEL_0_SINCE = 4  # older clients stumble over a feature whose lowest level is 0 (KAFKA-17011)
_SUPPORTED = (SupportedFeatureKey("group.version", 0, 1), SupportedFeatureKey("transaction.version", 0, 2))
_FINALIZED = (
    FinalizedFeatureKey("group.version", max_version_level=1, min_version_level=1),
    FinalizedFeatureKey("transaction.version", max_version_level=2, min_version_level=2),
)
"""group.version 1: groups of the new protocol (KIP-848). transaction.version 2: each transaction has its own
epoch (KIP-890).
"""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?\Z")  # KIP-511


def announcement(routes: Iterable[Route]) -> tuple[ApiVersion, ...]:
    by_key = sorted(routes, key=lambda route: route.api.key)
    return tuple(ApiVersion(route.api.key, *route.versions) for route in by_key)


def response(services: Services, version: int, error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error,
        api_keys=services.announced,
        supported_features=_SUPPORTED if version >= _LEVEL_0_SINCE else (),
        finalized_features_epoch=0,
        finalized_features=_FINALIZED,
    )


def handle(exchange: Exchange[ApiVersionsRequest], services: Services) -> ApiVersionsResponse | None:
    if exchange.version >= 3:
        name = exchange.request.client_software_name
        version = exchange.request.client_software_version
        if not (_SOFTWARE.match(name) and _SOFTWARE.match(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        exchange.connection.software = f"{name} {version}"
    frames = services.announced_frames
    frame = frames.get(exchange.version)
    exchange.answer_same(frame if frame is not None else _encode(services, exchange.version))
    return None


def _encode(services: Services, version: int) -> bytes:
    """The answer to nearly everybody."""
    chunks = encode_response(apis.API_VERSIONS, version, 0, response(services, version))
    frame = services.announced_frames[version] = b"".join(chunks)  # type: ignore[arg-type]  # all in memory
    return frame
