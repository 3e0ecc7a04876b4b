"""ListConfigResources: the resources that have settings.

0 knows only client metrics subscriptions (KIP-714, then named ListClientMetricsResources); 1 asks by type
(KIP-1142).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Message, ignorable, since


class ListConfigResourcesRequest(Message, versions=(0, 1), flexible_since=0):
    resource_types: Annotated[Sequence[Int8], since(1)] = ()  # empty: all


class ConfigResource(Message):
    resource_name: str = ""
    resource_type: Annotated[Int8, since(1), ignorable] = 16  # 16: client metrics


class ListConfigResourcesResponse(Message, versions=(0, 1), flexible_since=0):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: Sequence[ConfigResource] = ()
