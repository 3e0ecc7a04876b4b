"""CreateTopics 2-7: new topics; each succeeds or fails by itself.

The answer leaves when the topic is durable and its partitions are there to be used. From 5 on it carries the
partition count, replication factor and settings (to those who may describe them), from 7 on the topic id. A
name twice in one request is refused both times. A topic whose files cannot be made, on a full disk perhaps,
is there all the same, and answered with KAFKA_STORAGE_ERROR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ottla.controller.topics import TopicResult, TopicSpec
from ottla.model.configs import describe_topic
from ottla.model.errors import ErrorCode, Refused
from ottla.model.limits import TOPICS_PER_CHANGE_MAX
from ottla.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.server.change_deadlines import in_time
from ottla.server.exchange import Exchange
from ottla.server.long_requests import Steps

if TYPE_CHECKING:
    from ottla.server.services import Services

# Settings as they are told, by what was set: topics made together mostly have the same.
_Described = dict[tuple[tuple[str, str], ...], Sequence[CreatableTopicConfigs]]


def handle(exchange: Exchange[CreateTopicsRequest], services: Services) -> None:
    request = exchange.request
    refused: dict[str | None, TopicResult] = {}
    specs = []
    anywhere = services.may(exchange.connection, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)

    def created(results: Sequence[TopicResult]) -> None:
        if exchange.abandoned:
            return
        by_name = refused | {result.name: result for result in results}
        services.long_requests.begin(exchange, _answer(exchange, services, list(by_name.values())))

    if len(request.topics) > TOPICS_PER_CHANGE_MAX:
        text = f"{len(request.topics)} topics: at most {TOPICS_PER_CHANGE_MAX} can be made in one request"
        refusal = Refused(ErrorCode.POLICY_VIOLATION, text)
        created([TopicResult.refused(topic.name, refusal) for topic in request.topics])
        return
    for topic in request.topics:
        if anywhere or exchange.may(topic.name):
            specs.append(_spec(topic))
        else:
            refusal = Refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            refused[topic.name] = TopicResult.refused(topic.name, refusal)

    names = [spec.name for spec in specs]
    services.controller.create_topics(
        specs,
        validate_only=request.validate_only,
        done=in_time(services, request.timeout_ms, names, created),
    )


def _answer(
    exchange: Exchange[CreateTopicsRequest], services: Services, results: Sequence[TopicResult]
) -> Steps:
    topics = []
    described: _Described = {}
    for result in results:
        yield None
        topics.append(_result(exchange, _checked(result, services), described))
    return CreateTopicsResponse(topics=topics)


def _checked(result: TopicResult, services: Services) -> TopicResult:
    """With the reason when partitions of a new topic cannot be used."""
    if result.code != ErrorCode.NONE or result.name is None:
        return result
    try:
        services.partitions.check_online(result.name)
    except Refused as refusal:
        return TopicResult.refused(result.name, refusal, result.topic_id)
    return result


def _spec(topic: CreatableTopic) -> TopicSpec:
    return TopicSpec(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(assigned.partition_index, assigned.broker_ids) for assigned in topic.assignments],
        configs=[(config.name, config.value) for config in topic.configs],
    )


def _result(
    exchange: Exchange[CreateTopicsRequest], result: TopicResult, described: _Described
) -> CreatableTopicResult:
    name = result.name or ""
    if result.code != ErrorCode.NONE:
        return CreatableTopicResult(name, result.topic_id, result.code, result.text)
    services = exchange.services
    if not services.may(exchange.connection, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
        return CreatableTopicResult(
            name, result.topic_id, topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
    return CreatableTopicResult(
        name=name,
        topic_id=result.topic_id,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=_configs(services, result.configs, described),
    )


def _configs(
    services: Services, configs: Mapping[str, str], described: _Described
) -> Sequence[CreatableTopicConfigs]:
    key = tuple(configs.items())
    if key not in described:
        described[key] = [
            CreatableTopicConfigs(
                each.setting.name, each.value, each.read_only, each.source, each.setting.sensitive
            )
            for each in describe_topic(configs, services.broker_config)
        ]
    return described[key]
