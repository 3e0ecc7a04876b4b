"""IncrementalAlterConfigs: changes single settings of resources (KIP-339). 1 is flexible."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.protocol.fields import Int8, Int16, Int32, Message


class AlterableConfig(Message):
    name: str = ""
    config_operation: Int8 = 0  # 0: set, 1: delete, 2: append, 3: subtract
    value: str | None = None


class AlterConfigsResource(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: Sequence[AlterableConfig] = ()


class IncrementalAlterConfigsRequest(Message, versions=(0, 1), flexible_since=1):
    resources: Sequence[AlterConfigsResource] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(Message):
    error_code: Int16 = 0
    error_message: str | None = None
    resource_type: Int8 = 0
    resource_name: str = ""


class IncrementalAlterConfigsResponse(Message, versions=(0, 1), flexible_since=1):
    throttle_time_ms: Int32 = 0
    responses: Sequence[AlterConfigsResourceResponse] = ()
