"""ApiVersions: which versions of which APIs the broker speaks; the first request of nearly every client.

1 tells throttling; 3 is flexible and carries the client's name (KIP-511) and cluster features (KIP-584); 4
allows features whose lowest version is 0. The header of the response is never flexible: a client reads it
before it knows what the broker speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int16, Int32, Int64, Message, ignorable, since, tagged


class ApiVersionsRequest(Message, versions=(0, 4), flexible_since=3):
    client_software_name: Annotated[str, since(3), ignorable] = ""
    client_software_version: Annotated[str, since(3), ignorable] = ""


class ApiVersion(Message):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class SupportedFeatureKey(Message):
    name: str = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Message):
    name: str = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class ApiVersionsResponse(Message, versions=(0, 4), flexible_since=3):
    error_code: Int16 = 0
    api_keys: Sequence[ApiVersion] = ()
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    supported_features: Annotated[Sequence[SupportedFeatureKey], tagged(0, since=3), ignorable] = ()
    finalized_features_epoch: Annotated[Int64, tagged(1, since=3), ignorable] = -1  # -1: not known
    finalized_features: Annotated[Sequence[FinalizedFeatureKey], tagged(2, since=3), ignorable] = ()
    zk_migration_ready: Annotated[bool, tagged(3, since=3), ignorable] = False
