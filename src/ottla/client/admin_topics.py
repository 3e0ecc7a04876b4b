"""Topics and the cluster, as admin calls: metadata, creation, deletion, growth. Used by `admin` only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from ottla.client.addresses import Address
from ottla.client.admin_configs import source_of
from ottla.client.admin_values import (
    ApiRange,
    BrokerVersions,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    NewTopic,
)
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker, ClusterView, Partition, Topic
from ottla.client.errors import BrokerError, ClientError, UnknownTopic, Unsupported, broker_error
from ottla.client.metadata import metadata_request, view_of
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import (
    API_VERSIONS,
    APIS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    FIND_COORDINATOR,
    METADATA,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ottla.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataResponse

_NEAREST_COUNT = 3
_KNOWN_MS_MAX = 5_000
_COORDINATOR_KINDS = {"group": 0, "transaction": 1}


async def view(cluster: Cluster, topics: Iterable[str] | None, deadline_ms: int) -> ClusterView:
    """The cluster with `topics` (None: all). What is not there raises UnknownTopic with near names."""
    wanted = None if topics is None else list(topics)
    answer = await _ask(cluster, wanted, deadline_ms)
    for topic in answer.topics:
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise await unknown_topic(cluster, topic.name or "", deadline_ms)
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
            raise broker_error(topic.error_code, f"topic {topic.name!r}")
    cluster.told, cluster.told_at_ms = view_of(answer), cluster.now_ms()
    return cluster.told


async def _ask(cluster: Cluster, topics: list[str] | None, deadline_ms: int) -> MetadataResponse:
    async def ask(deadline_ms: int) -> MetadataResponse:
        request = metadata_request(topics)
        return await cluster.call(cluster.any_address(), METADATA, request, MetadataResponse, deadline_ms)

    return await cluster.retry(ask, deadline_ms)


async def unknown_topic(cluster: Cluster, name: str, deadline_ms: int) -> UnknownTopic:
    known = [topic.name for topic in (await _ask(cluster, None, deadline_ms)).topics if topic.name]
    import difflib  # only mistakes need it

    return UnknownTopic(name, tuple(difflib.get_close_matches(name, known, n=_NEAREST_COUNT)))


async def controller_address(cluster: Cluster, deadline_ms: int) -> Address:
    """Where changes are decided; a broker that knows no controller forwards them itself."""
    seen = await view(cluster, (), deadline_ms)
    controller = seen.brokers.get(seen.controller_id)
    return cluster.any_address() if controller is None else controller.address


async def describe_cluster(cluster: Cluster, deadline_ms: int) -> ClusterDescription:
    async def ask(deadline_ms: int) -> DescribeClusterResponse:
        answer = await cluster.call(
            cluster.any_address(),
            DESCRIBE_CLUSTER,
            DescribeClusterRequest(),
            DescribeClusterResponse,
            deadline_ms,
        )
        if answer.error_code:
            raise broker_error(answer.error_code, "the cluster", answer.error_message)
        return answer

    try:
        told = await cluster.retry(ask, deadline_ms)
    except Unsupported:  # before Kafka 2.8 only Metadata tells
        seen = await view(cluster, (), deadline_ms)
        brokers = tuple(seen.brokers[broker_id] for broker_id in sorted(seen.brokers))
        return ClusterDescription(seen.cluster_id or "", seen.controller_id, brokers)
    found = sorted(told.brokers, key=lambda each: each.broker_id)
    return ClusterDescription(
        told.cluster_id,
        told.controller_id,
        tuple(Broker(each.broker_id, each.host, each.port, each.rack) for each in found),
    )


async def topic_pages(
    cluster: Cluster, names: Sequence[str], page_partitions: int, deadline_ms: int
) -> tuple[Topic, ...]:
    """Topics with all their partitions, however many, asked for page by page."""
    partitions: dict[str, list[Partition]] = {}
    heads: dict[str, DescribeTopicPartitionsResponseTopic] = {}
    cursor: Cursor | None = None
    while True:

        async def ask(deadline_ms: int, cursor: Cursor | None = cursor) -> DescribeTopicPartitionsResponse:
            request = DescribeTopicPartitionsRequest(
                [TopicRequest(name) for name in sorted(names)], page_partitions, cursor
            )
            address = cluster.any_address()
            return await cluster.call(
                address, DESCRIBE_TOPIC_PARTITIONS, request, DescribeTopicPartitionsResponse, deadline_ms
            )

        answer = await cluster.retry(ask, deadline_ms)
        for topic in answer.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise await unknown_topic(cluster, topic.name or "", deadline_ms)
            if topic.error_code:
                raise broker_error(topic.error_code, f"topic {topic.name!r}")
            assert topic.name is not None
            heads[topic.name] = topic
            partitions.setdefault(topic.name, []).extend(
                Partition(
                    index=each.partition_index,
                    leader=each.leader_id if each.leader_id >= 0 else None,
                    leader_epoch=each.leader_epoch,
                    replicas=tuple(each.replica_nodes),
                    isr=tuple(each.isr_nodes),
                    offline=tuple(each.offline_replicas),
                )
                for each in topic.partitions
            )
        cursor = answer.next_cursor
        if cursor is None:
            break
    return tuple(
        Topic(name, head.topic_id, head.is_internal, tuple(partitions[name])) for name, head in heads.items()
    )


async def broker_versions(cluster: Cluster, address: Address, deadline_ms: int) -> BrokerVersions:
    answer = await cluster.call(
        address, API_VERSIONS, ApiVersionsRequest("ottla", "0"), ApiVersionsResponse, deadline_ms
    )
    names = {key: api.name for key, api in APIS.items()}
    apis = (
        ApiRange(each.api_key, names.get(each.api_key, ""), each.min_version, each.max_version)
        for each in answer.api_keys
    )
    return BrokerVersions(
        apis=tuple(sorted(apis, key=lambda each: each.key)),
        supported_features={
            each.name: (each.min_version, each.max_version) for each in answer.supported_features
        },
        finalized_features={
            each.name: (each.min_version_level, each.max_version_level) for each in answer.finalized_features
        },
        finalized_epoch=None if answer.finalized_features_epoch < 0 else answer.finalized_features_epoch,
    )


def topics_of(seen: ClusterView, *, internal: bool) -> tuple[Topic, ...]:
    return tuple(
        seen.topics[name] for name in sorted(seen.topics) if internal or not seen.topics[name].is_internal
    )


async def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], deadline_ms: int, *, validate_only: bool
) -> dict[str, CreatedTopic | ClientError]:
    request = CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics],
        timeout_ms=max(deadline_ms - cluster.now_ms(), 1),
        validate_only=validate_only,
    )
    address = await controller_address(cluster, deadline_ms)
    answer = await cluster.call(address, CREATE_TOPICS, request, CreateTopicsResponse, deadline_ms)
    outcomes = {result.name: _created(result) for result in answer.topics}
    if not validate_only:
        created = [name for name, outcome in outcomes.items() if isinstance(outcome, CreatedTopic)]
        await _await_known(cluster, created, min(deadline_ms, cluster.now_ms() + _KNOWN_MS_MAX))
    return outcomes


async def _await_known(cluster: Cluster, topics: list[str], deadline_ms: int) -> None:
    """Until a broker tells of them: with KRaft it may hear of a topic after its creation was acknowledged."""

    async def ask(deadline_ms: int) -> None:
        for topic in (await _ask(cluster, topics, deadline_ms)).topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise broker_error(topic.error_code)

    if topics:
        with suppress(ClientError):  # they are created all the same
            await cluster.retry(ask, deadline_ms)


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.assignment or {}
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assignment else topic.partitions,
        replication_factor=-1 if assignment else topic.replication_factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
            for index, brokers in assignment.items()
        ],
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic | ClientError:
    if result.error_code:
        return broker_error(result.error_code, f"topic {result.name!r}", result.error_message)
    configs = {
        each.name: ConfigEntry(
            each.name, each.value, source_of(each.config_source), each.read_only, each.is_sensitive
        )
        for each in result.configs or ()
    }
    return CreatedTopic(
        result.name, result.topic_id, result.num_partitions, result.replication_factor, configs
    )


async def delete_topics(
    cluster: Cluster, names: Sequence[str], deadline_ms: int
) -> dict[str, ClientError | None]:
    timeout_ms = max(deadline_ms - cluster.now_ms(), 1)

    def request(version: int) -> DeleteTopicsRequest:
        if version < 6:
            return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)
        return DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in names], timeout_ms=timeout_ms)

    address = await controller_address(cluster, deadline_ms)
    answer = await cluster.call(address, DELETE_TOPICS, request, DeleteTopicsResponse, deadline_ms)
    outcomes: dict[str, ClientError | None] = {}
    for result in answer.responses:
        name = result.name or ""
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            outcomes[name] = await unknown_topic(cluster, name, deadline_ms)
        elif result.error_code:
            outcomes[name] = broker_error(result.error_code, f"topic {name!r}", result.error_message)
        else:
            outcomes[name] = None
    return outcomes


async def create_partitions(
    cluster: Cluster,
    name: str,
    count: int,
    assignment: Sequence[Sequence[int]] | None,
    deadline_ms: int,
    *,
    validate_only: bool,
) -> None:
    wanted = None if assignment is None else [CreatePartitionsAssignment(tuple(each)) for each in assignment]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name, count, wanted)],
        timeout_ms=max(deadline_ms - cluster.now_ms(), 1),
        validate_only=validate_only,
    )
    address = await controller_address(cluster, deadline_ms)
    answer = await cluster.call(address, CREATE_PARTITIONS, request, CreatePartitionsResponse, deadline_ms)
    for result in answer.results:
        if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise await unknown_topic(cluster, name, deadline_ms)
        if result.error_code:
            raise broker_error(result.error_code, f"topic {name!r}", result.error_message)


async def find_coordinator(cluster: Cluster, key: str, kind: str, deadline_ms: int) -> Broker:
    def request(version: int) -> FindCoordinatorRequest:
        if version < 4:
            return FindCoordinatorRequest(key=key, key_type=_COORDINATOR_KINDS[kind])
        return FindCoordinatorRequest(coordinator_keys=(key,), key_type=_COORDINATOR_KINDS[kind])

    async def ask(deadline_ms: int) -> Broker:
        address = cluster.any_address()
        answer = await cluster.call(address, FIND_COORDINATOR, request, FindCoordinatorResponse, deadline_ms)
        found = answer.coordinators[0] if answer.coordinators else answer
        if found.error_code:
            raise _coordinator_problem(found.error_code, kind, key, found.error_message)
        return Broker(found.node_id, found.host, found.port)

    return await cluster.retry(ask, deadline_ms)


def _coordinator_problem(code: int, kind: str, key: str, message: str | None) -> BrokerError:
    return broker_error(code, f"{kind} {key!r}", message)
