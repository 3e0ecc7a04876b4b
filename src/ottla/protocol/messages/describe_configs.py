"""DescribeConfigs: the settings of topics and brokers, and where each value comes from.

1 has sources and synonyms (KIP-226); 3 types and documentation (KIP-569); 4 is flexible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ottla.protocol.fields import Int8, Int16, Int32, Message, ignorable, since


class DescribeConfigsResource(Message):
    resource_type: Int8 = 0
    resource_name: str = ""
    configuration_keys: Sequence[str] | None = None  # null: all


class DescribeConfigsRequest(Message, versions=(1, 4), flexible_since=4):
    resources: Sequence[DescribeConfigsResource] = ()
    include_synonyms: bool = False
    include_documentation: Annotated[bool, since(3)] = False


class DescribeConfigsSynonym(Message):
    name: str = ""
    value: str | None = None
    source: Int8 = 0


class DescribeConfigsResourceResult(Message):
    name: str = ""
    value: str | None = None
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False
    synonyms: Sequence[DescribeConfigsSynonym] = ()
    config_type: Annotated[Int8, since(3), ignorable] = 0
    documentation: Annotated[str | None, since(3), ignorable] = None


class DescribeConfigsResult(Message):
    error_code: Int16 = 0
    error_message: str | None = None
    resource_type: Int8 = 0
    resource_name: str = ""
    configs: Sequence[DescribeConfigsResourceResult] = ()


class DescribeConfigsResponse(Message, versions=(1, 4), flexible_since=4):
    throttle_time_ms: Int32 = 0
    results: Sequence[DescribeConfigsResult] = ()
