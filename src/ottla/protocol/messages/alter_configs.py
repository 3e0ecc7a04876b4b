"""AlterConfigs: replaces all settings of a resource; clients prefer IncrementalAlterConfigs.

2 is flexible.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int8, Int16, Int32, Message


class AlterableConfig(Message):
    name: str = ""
    value: str | None = None


class AlterConfigsResource(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class AlterConfigsRequest(Message, versions=(0, 2), flexible_since=2):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    error_code: Int16 = 0
    error_message: str | None = None
    resource_type: Int8 = 0
    resource_name: str = ""


class AlterConfigsResponse(Message, versions=(0, 2), flexible_since=2):
    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()
