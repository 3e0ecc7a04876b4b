"""DescribeConfigs 1-4: settings of topics and brokers, with where each value comes from.

- Synonyms (1+) list every place that would give the value, strongest first; documentation from 3 on.
- Values of secrets are never told.
- A broker's resource is its id; an empty name means the defaults of the whole cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.controller.configs import ResourceType as ConfigResourceType
from ottla.model.configs import DescribedSetting, describe_broker, describe_broker_defaults, describe_topic
from ottla.model.errors import ErrorCode, Refused
from ottla.model.topics import topic_name_problem
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from ottla.security.authorizer import CLUSTER_NAME, ResourceType
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services


def handle(exchange: Exchange[DescribeConfigsRequest], services: Services) -> None:
    services.long_requests.begin(exchange, _answer(exchange, services))


def _answer(exchange: Exchange[DescribeConfigsRequest], services: Services) -> Steps:
    asked: set[tuple[int, str]] = set()
    results = []
    for resource in exchange.request.resources:
        yield None
        key = (resource.resource_type, resource.resource_name)
        if key in asked:
            text = "the request asks for it twice"
            results.append(DescribeConfigsResult(ErrorCode.INVALID_REQUEST, text, *key))
        else:
            asked.add(key)
            results.append(_describe(exchange, services, resource))
    return DescribeConfigsResponse(results=results)


def _describe(
    exchange: Exchange[DescribeConfigsRequest], services: Services, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        described = _settings(exchange, services, resource)
    except Refused as refusal:
        return DescribeConfigsResult(
            refusal.code, refusal.text, resource.resource_type, resource.resource_name
        )
    wanted = set(resource.configuration_keys or ())
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            _setting(exchange.request, setting)
            for setting in described
            if not wanted or setting.setting.name in wanted
        ],
    )


def _settings(
    exchange: Exchange[DescribeConfigsRequest], services: Services, resource: DescribeConfigsResource
) -> list[DescribedSetting]:
    name = resource.resource_name
    if resource.resource_type == ConfigResourceType.TOPIC:
        if not exchange.may(name):
            raise Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        problem = topic_name_problem(name)
        if problem is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = services.controller.image.topics.get(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return describe_topic(topic.configs, services.broker_config)
    if resource.resource_type == ConfigResourceType.BROKER:
        if not services.may(
            exchange.connection, exchange.route.operation, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        if not name:
            return describe_broker_defaults(services.broker_config)
        if name != str(services.node_id):
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"this is broker {services.node_id}; ask broker {name!r} for its own settings",
            )
        return describe_broker(services.broker_config)
    raise Refused(
        ErrorCode.INVALID_REQUEST,
        f"resource type {resource.resource_type} has no settings here; topics (2) and brokers (4) do",
    )


def _setting(request: DescribeConfigsRequest, described: DescribedSetting) -> DescribeConfigsResourceResult:
    setting = described.setting
    synonyms = described.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=described.value,
        read_only=described.read_only,
        config_source=described.source,
        is_sensitive=setting.sensitive,
        synonyms=[
            DescribeConfigsSynonym(synonym.name, synonym.value, synonym.source) for synonym in synonyms
        ],
        config_type=setting.type,
        documentation=setting.described if request.include_documentation else None,
    )
