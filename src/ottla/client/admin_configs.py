"""Settings of topics and brokers, as admin calls. Used by `admin` only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ottla.client.addresses import Address
from ottla.client.admin_values import ConfigEntry, ConfigResource, ConfigSynonym
from ottla.client.cluster import Cluster
from ottla.client.errors import UnknownTopic, broker_error
from ottla.model.config_types import ConfigSource, ConfigType
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import (
    ALTER_CONFIGS,
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    LIST_CONFIG_RESOURCES,
)
from ottla.protocol.messages.alter_configs import AlterableConfig as ReplacingConfig
from ottla.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from ottla.protocol.messages.alter_configs import AlterConfigsResource as ReplacedResource
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ottla.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

KINDS = {"topic": 2, "broker": 4, "client_metrics": 16, "group": 32}
_KIND_NAMES = {code: name for name, code in KINDS.items()}

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


def source_of(code: int) -> ConfigSource | None:
    return ConfigSource(code) if code in ConfigSource._value2member_map_ else None


async def describe(
    cluster: Cluster,
    address: Address,
    resource: ConfigResource,
    names: Iterable[str] | None,
    deadline_ms: int,
) -> dict[str, ConfigEntry]:
    keys = None if names is None else tuple(names)
    asked = DescribeConfigsResource(KINDS[resource.kind], resource.name, keys)

    def request(version: int) -> DescribeConfigsRequest:
        return DescribeConfigsRequest((asked,), include_synonyms=True, include_documentation=version >= 3)

    answer = await cluster.call(address, DESCRIBE_CONFIGS, request, DescribeConfigsResponse, deadline_ms)
    (result,) = answer.results
    _check(resource, result.error_code, result.error_message)
    return {each.name: _entry(each) for each in result.configs}


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    known = config.config_type in ConfigType._value2member_map_
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=source_of(config.config_source),
        read_only=config.read_only,
        sensitive=config.is_sensitive,
        type=ConfigType(config.config_type).name.lower() if known else "unknown",
        doc=config.documentation or "",
        synonyms=tuple(
            ConfigSynonym(each.name, each.value, source_of(each.source)) for each in config.synonyms
        ),
    )


def changes(
    set_to: Mapping[str, str], delete: Iterable[str], append: Mapping[str, str], subtract: Mapping[str, str]
) -> list[AlterableConfig]:
    return [
        *(AlterableConfig(name, _SET, value) for name, value in set_to.items()),
        *(AlterableConfig(name, _DELETE, None) for name in delete),
        *(AlterableConfig(name, _APPEND, value) for name, value in append.items()),
        *(AlterableConfig(name, _SUBTRACT, value) for name, value in subtract.items()),
    ]


async def alter(
    cluster: Cluster,
    address: Address,
    resource: ConfigResource,
    changed: list[AlterableConfig],
    deadline_ms: int,
    *,
    validate_only: bool,
) -> None:
    request = IncrementalAlterConfigsRequest(
        (AlterConfigsResource(KINDS[resource.kind], resource.name, changed),), validate_only
    )
    answer = await cluster.call(
        address, INCREMENTAL_ALTER_CONFIGS, request, IncrementalAlterConfigsResponse, deadline_ms
    )
    for result in answer.responses:
        _check(resource, result.error_code, result.error_message)


async def replace(
    cluster: Cluster,
    address: Address,
    resource: ConfigResource,
    configs: Mapping[str, str],
    deadline_ms: int,
    *,
    validate_only: bool,
) -> None:
    """These settings and no others: what is left out goes back to its default."""
    wanted = [ReplacingConfig(name, value) for name, value in configs.items()]
    request = AlterConfigsRequest(
        (ReplacedResource(KINDS[resource.kind], resource.name, wanted),), validate_only
    )
    answer = await cluster.call(address, ALTER_CONFIGS, request, AlterConfigsResponse, deadline_ms)
    for result in answer.responses:
        _check(resource, result.error_code, result.error_message)


def _check(resource: ConfigResource, code: int, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise UnknownTopic(resource.name)
    if code:
        raise broker_error(code, f"{resource.kind} {resource.name!r}", message)


async def resources(cluster: Cluster, address: Address, deadline_ms: int) -> tuple[ConfigResource, ...]:
    answer = await cluster.call(
        address, LIST_CONFIG_RESOURCES, ListConfigResourcesRequest(), ListConfigResourcesResponse, deadline_ms
    )
    if answer.error_code:
        raise broker_error(answer.error_code, "config resources")
    return tuple(
        ConfigResource(_KIND_NAMES.get(each.resource_type, str(each.resource_type)), each.resource_name)
        for each in answer.config_resources
    )
