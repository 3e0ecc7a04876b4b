"""Every route asks for the permission it declares, and without it nothing is told and nothing changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from calls import (
    at,
    batch_of,
    commit_request,
    create_topic,
    describe_topic,
    fetch_request,
    produce_request,
    unique_name,
)
from in_process import InProcessBroker, running_broker
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId
from ottla.protocol.fields import Message
from ottla.protocol.messages import alter_configs, describe_producers, incremental_alter_configs
from ottla.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.messages.delete_groups import DeleteGroupsRequest
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.describe_groups import DescribeGroupsRequest
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.protocol.messages.describe_producers import DescribeProducersRequest
from ottla.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from ottla.protocol.messages.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.messages.end_txn import EndTxnRequest
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.protocol.messages.heartbeat import HeartbeatRequest
from ottla.protocol.messages.init_producer_id import InitProducerIdRequest
from ottla.protocol.messages.join_group import JoinGroupRequest
from ottla.protocol.messages.leave_group import LeaveGroupRequest
from ottla.protocol.messages.list_config_resources import ListConfigResourcesRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ottla.protocol.messages.list_transactions import ListTransactionsRequest
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.protocol.messages.sync_group import SyncGroupRequest
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from ottla.security.principals import ANONYMOUS, Principal
from ottla.server.routes import all_routes
from wire import WireClient

Question = tuple[Operation, ResourceType, str]


@dataclass
class Gatekeeper:
    """Remembers what it was asked, and lets through what a test likes."""

    asked: list[Question] = field(default_factory=list)
    allows: Callable[[Question], bool] = lambda _: True

    def authorize(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        resource_name: str,
    ) -> bool:
        assert (principal, host) == (ANONYMOUS, "127.0.0.1")
        question = (operation, resource_type, resource_name)
        self.asked.append(question)
        return self.allows(question)


@pytest.fixture(scope="module")
def gatekeeper() -> Gatekeeper:
    return Gatekeeper()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, gatekeeper: Gatekeeper) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path_factory.mktemp("guarded"), authorizer=gatekeeper) as running:
        yield running


@pytest.fixture
def client(guarded: InProcessBroker, gatekeeper: Gatekeeper) -> Iterator[WireClient]:
    gatekeeper.allows = lambda _: True
    with WireClient(guarded.bootstrap) as client:
        yield client


@pytest.fixture
def topic(client: WireClient, gatekeeper: Gatekeeper) -> str:
    """A topic with one record, and a group that has read it, made while everything was allowed."""
    name = create_topic(client)
    client.call(produce_request(name, batch_of(b"secret")), 12)
    client.call(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4)
    client.call(commit_request(GROUP, name, 1), 9)
    client.call(FindCoordinatorRequest(key_type=1, coordinator_keys=[TRANSACTION]), 4)
    client.call(InitProducerIdRequest(TRANSACTION, 60_000), 4)
    gatekeeper.asked.clear()
    return name


DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
GROUP = "group"
TRANSACTION = "transaction"
TRANSACTION_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


@dataclass
class Case:
    """A request about a topic, and what must be left of its answer when nothing is allowed."""

    request: Callable[[str], Message]
    version: int
    refused: Callable[[Any], bool]
    name: str | None = None  # of the resource that is asked for; None: the topic


def _partition_code(response: Any) -> int:
    return int(response.topics[0].partitions[0].error_code)


CASES: dict[str, Case] = {
    "Produce": Case(
        lambda topic: produce_request(topic, batch_of(b"v")),
        12,
        lambda it: it.responses[0].partition_responses[0].error_code == DENIED,
    ),
    "Fetch": Case(
        lambda topic: fetch_request(topic, at(0)),
        12,
        lambda it: (
            (it.responses[0].partitions[0].error_code, it.responses[0].partitions[0].records) == (DENIED, b"")
        ),
    ),
    "ListOffsets": Case(
        lambda topic: ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, [ListOffsetsPartition(0, -1, -1)])]),
        11,
        lambda it: _partition_code(it) == DENIED and it.topics[0].partitions[0].offset == -1,
    ),
    "Metadata": Case(
        lambda topic: MetadataRequest([MetadataRequestTopic(name=topic)]),
        12,
        lambda it: (it.topics[0].error_code, it.topics[0].partitions) == (DENIED, ()),
    ),
    "FindCoordinator": Case(
        lambda topic: FindCoordinatorRequest(coordinator_keys=["group"]),
        4,
        lambda it: (
            (it.coordinators[0].error_code, it.coordinators[0].node_id)
            == (ErrorCode.GROUP_AUTHORIZATION_FAILED, -1)
        ),
        name="group",
    ),
    "OffsetCommit": Case(
        lambda topic: commit_request(GROUP, topic, 1),
        9,
        lambda it: _partition_code(it) == GROUP_DENIED,
        name=GROUP,
    ),
    "OffsetFetch": Case(
        lambda topic: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GROUP)]),
        9,
        lambda it: (it.groups[0].error_code, it.groups[0].topics) == (GROUP_DENIED, ()),
        name=GROUP,
    ),
    "OffsetDelete": Case(
        lambda topic: OffsetDeleteRequest(
            GROUP, [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
        ),
        0,
        lambda it: (it.error_code, it.topics) == (GROUP_DENIED, ()),
        name=GROUP,
    ),
    "JoinGroup": Case(
        lambda topic: JoinGroupRequest(GROUP, 6000, 6000, protocol_type="x"),
        9,
        lambda it: (it.error_code, it.member_id) == (GROUP_DENIED, ""),
        name=GROUP,
    ),
    "SyncGroup": Case(
        lambda topic: SyncGroupRequest(GROUP), 3, lambda it: it.error_code == GROUP_DENIED, name=GROUP
    ),
    "Heartbeat": Case(
        lambda topic: HeartbeatRequest(GROUP), 4, lambda it: it.error_code == GROUP_DENIED, name=GROUP
    ),
    "LeaveGroup": Case(
        lambda topic: LeaveGroupRequest(GROUP), 4, lambda it: it.error_code == GROUP_DENIED, name=GROUP
    ),
    "DescribeGroups": Case(
        lambda topic: DescribeGroupsRequest([GROUP]),
        6,
        lambda it: (it.groups[0].error_code, it.groups[0].group_state) == (GROUP_DENIED, ""),
        name=GROUP,
    ),
    "ConsumerGroupHeartbeat": Case(
        lambda topic: ConsumerGroupHeartbeatRequest(GROUP, "m"),
        1,
        lambda it: it.error_code == GROUP_DENIED,
        name=GROUP,
    ),
    "ConsumerGroupDescribe": Case(
        lambda topic: ConsumerGroupDescribeRequest([GROUP]),
        1,
        lambda it: it.groups[0].error_code == GROUP_DENIED,
        name=GROUP,
    ),
    "ListGroups": Case(lambda topic: ListGroupsRequest(), 5, lambda it: it.groups == (), name=GROUP),
    "DeleteGroups": Case(
        lambda topic: DeleteGroupsRequest([GROUP]),
        2,
        lambda it: it.results[0].error_code == GROUP_DENIED,
        name=GROUP,
    ),
    "CreateTopics": Case(
        lambda topic: CreateTopicsRequest([CreatableTopic(f"{topic}-new", 1, 1)]),
        7,
        lambda it: (it.topics[0].error_code, it.topics[0].configs) == (DENIED, None),
        name="{}-new",
    ),
    "DeleteTopics": Case(
        lambda topic: DeleteTopicsRequest(topics=[DeleteTopicState(topic)]),
        6,
        lambda it: it.responses[0].error_code == DENIED,
    ),
    "DeleteRecords": Case(
        lambda topic: DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 1)])]),
        2,
        lambda it: _partition_code(it) == DENIED,
    ),
    "InitProducerId": Case(
        lambda topic: InitProducerIdRequest(),
        4,
        lambda it: (it.error_code, it.producer_id) == (CLUSTER_DENIED, -1),
        name=CLUSTER_NAME,
    ),
    "OffsetForLeaderEpoch": Case(
        lambda topic: OffsetForLeaderEpochRequest(
            -1, [OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, -1, 0)])]
        ),
        4,
        lambda it: _partition_code(it) == DENIED and it.topics[0].partitions[0].end_offset == -1,
    ),
    "AddPartitionsToTxn": Case(
        lambda topic: AddPartitionsToTxnRequest((), TRANSACTION, 1, 0, [AddPartitionsToTxnTopic(topic, [0])]),
        3,
        lambda it: (
            it.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            == TRANSACTION_DENIED
        ),
        name=TRANSACTION,
    ),
    "AddOffsetsToTxn": Case(
        lambda topic: AddOffsetsToTxnRequest(TRANSACTION, 1, 0, GROUP),
        3,
        lambda it: it.error_code == TRANSACTION_DENIED,
        name=TRANSACTION,
    ),
    "EndTxn": Case(
        lambda topic: EndTxnRequest(TRANSACTION, 1, 0, True),
        3,
        lambda it: it.error_code == TRANSACTION_DENIED,
        name=TRANSACTION,
    ),
    "WriteTxnMarkers": Case(
        lambda topic: WriteTxnMarkersRequest(
            [WritableTxnMarker(999, 0, True, [WritableTxnMarkerTopic(topic, [0])], 0)]
        ),
        1,
        lambda it: it.markers[0].topics[0].partitions[0].error_code == CLUSTER_DENIED,
        name=CLUSTER_NAME,
    ),
    "TxnOffsetCommit": Case(
        lambda topic: TxnOffsetCommitRequest(
            TRANSACTION,
            GROUP,
            1,
            0,
            topics=[TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 1)])],
        ),
        3,
        lambda it: _partition_code(it) in (GROUP_DENIED, TRANSACTION_DENIED),
        name=GROUP,
    ),
    "DescribeProducers": Case(
        lambda topic: DescribeProducersRequest([describe_producers.TopicRequest(topic, [0])]),
        0,
        lambda it: _partition_code(it) == DENIED,
    ),
    "DescribeTransactions": Case(
        lambda topic: DescribeTransactionsRequest([TRANSACTION]),
        0,
        lambda it: it.transaction_states[0].error_code == TRANSACTION_DENIED,
        name=TRANSACTION,
    ),
    "ListTransactions": Case(
        lambda topic: ListTransactionsRequest(),
        1,
        lambda it: it.transaction_states == (),
        name=TRANSACTION,
    ),
    "DescribeConfigs": Case(
        lambda topic: DescribeConfigsRequest([DescribeConfigsResource(2, topic)]),
        4,
        lambda it: (it.results[0].error_code, it.results[0].configs) == (DENIED, ()),
    ),
    "AlterConfigs": Case(
        lambda topic: alter_configs.AlterConfigsRequest(
            [
                alter_configs.AlterConfigsResource(
                    2, topic, [alter_configs.AlterableConfig("retention.ms", "1")]
                )
            ]
        ),
        2,
        lambda it: it.responses[0].error_code == DENIED,
    ),
    "DescribeLogDirs": Case(
        lambda topic: DescribeLogDirsRequest(None),
        4,
        lambda it: (it.error_code, it.results) == (CLUSTER_DENIED, ()),
        name=CLUSTER_NAME,
    ),
    "CreatePartitions": Case(
        lambda topic: CreatePartitionsRequest([CreatePartitionsTopic(topic, 5)]),
        3,
        lambda it: it.results[0].error_code == DENIED,
    ),
    "IncrementalAlterConfigs": Case(
        lambda topic: incremental_alter_configs.IncrementalAlterConfigsRequest(
            [
                incremental_alter_configs.AlterConfigsResource(
                    2, topic, [incremental_alter_configs.AlterableConfig("retention.ms", 0, "1")]
                )
            ]
        ),
        1,
        lambda it: it.responses[0].error_code == DENIED,
    ),
    "DescribeCluster": Case(
        lambda topic: DescribeClusterRequest(include_cluster_authorized_operations=True),
        1,
        lambda it: it.cluster_authorized_operations == 0,
        name=CLUSTER_NAME,
    ),
    "ListConfigResources": Case(
        lambda topic: ListConfigResourcesRequest(),
        1,
        lambda it: (it.error_code, it.config_resources) == (CLUSTER_DENIED, ()),
        name=CLUSTER_NAME,
    ),
    "DescribeTopicPartitions": Case(
        lambda topic: DescribeTopicPartitionsRequest([TopicRequest(topic)]),
        0,
        lambda it: (it.topics[0].error_code, it.topics[0].partitions) == (DENIED, ()),
    ),
}

ROUTES = {route.api.name: route for route in all_routes()}


def test_every_route_but_one_has_a_case_here() -> None:
    """ApiVersions needs no permission: a client asks it before anything else."""
    assert CASES.keys() | {"ApiVersions"} == ROUTES.keys()


@pytest.mark.parametrize("api", list(CASES))
def test_a_route_asks_for_what_it_declares(
    client: WireClient, gatekeeper: Gatekeeper, topic: str, api: str
) -> None:
    case, route = CASES[api], ROUTES[api]
    response = client.call(case.request(topic), case.version)
    assert not case.refused(response)
    name = topic if case.name is None else case.name.format(topic)
    if api == "CreateTopics":  # the permission to create any topic is asked for first, and is enough
        assert (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME) in gatekeeper.asked
        gatekeeper.allows = lambda question: question[1] is not ResourceType.CLUSTER
        client.call(CreateTopicsRequest([CreatableTopic(f"{topic}-new", 1, 1)]), 7)
    if api == "ListGroups":  # who may describe the cluster sees all groups
        assert (Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME) in gatekeeper.asked
        gatekeeper.allows = lambda question: question[1] is not ResourceType.CLUSTER
        assert [each.group_id for each in client.call(ListGroupsRequest(), 5).groups] == [GROUP]
    assert (route.operation, route.resource, name) in gatekeeper.asked


@pytest.mark.parametrize("api", list(CASES))
def test_without_permission_nothing_is_told_and_nothing_changes(
    guarded: InProcessBroker, client: WireClient, gatekeeper: Gatekeeper, topic: str, api: str
) -> None:
    case = CASES[api]

    def state() -> object:
        """All that a request could change."""
        image = guarded.broker._controller.image
        return (
            {name: (len(known.partitions), dict(known.configs)) for name, known in image.topics.items()},
            [
                (str(partition), partition.log_start_offset, partition.log_end_offset)
                for partition in guarded.broker.partitions
            ],
        )

    before = None
    while (now := guarded.on_owner(state)) != before:  # that a transaction of before is done is noted later
        before = now
        time.sleep(0.06)
    gatekeeper.allows = lambda _: False
    assert case.refused(client.call(case.request(topic), case.version))
    assert guarded.on_owner(state) == before


def test_api_versions_asks_nobody(client: WireClient, gatekeeper: Gatekeeper) -> None:
    gatekeeper.asked.clear()
    gatekeeper.allows = lambda _: False
    assert client.call(ApiVersionsRequest("x", "1"), 3).error_code == ErrorCode.NONE
    assert gatekeeper.asked == []


# -- the finer points ----------------------------------------------------------------------------------------


def test_lists_of_all_topics_leave_out_what_may_not_be_described(
    client: WireClient, gatekeeper: Gatekeeper, topic: str
) -> None:
    hidden = create_topic(client)
    gatekeeper.allows = lambda question: question[2] != hidden
    names = {each.name for each in client.call(MetadataRequest(None), 12).topics}
    assert topic in names
    assert hidden not in names
    names = {each.name for each in client.call(DescribeTopicPartitionsRequest(), 0).topics}
    assert topic in names
    assert hidden not in names


def test_a_topic_is_not_made_by_asking_without_the_permission_to_create(
    client: WireClient, gatekeeper: Gatekeeper
) -> None:
    name = unique_name("unmade")
    gatekeeper.allows = lambda question: question[0] is not Operation.CREATE
    (answer,) = client.call(MetadataRequest([MetadataRequestTopic(name=name)]), 12).topics
    assert answer.error_code != ErrorCode.NONE
    gatekeeper.allows = lambda _: True
    assert describe_topic(client, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settings_of_a_new_topic_are_told_to_those_who_may_describe_them(
    client: WireClient, gatekeeper: Gatekeeper
) -> None:
    gatekeeper.allows = lambda question: question[0] is not Operation.DESCRIBE_CONFIGS
    (result,) = client.call(CreateTopicsRequest([CreatableTopic(unique_name(), 1, 1)]), 7).topics
    assert (result.error_code, result.topic_config_error_code) == (ErrorCode.NONE, DENIED)
    assert (result.configs, result.num_partitions, result.replication_factor) == (None, -1, -1)


def test_ids_do_not_give_away_topics_that_may_not_be_described(
    client: WireClient, gatekeeper: Gatekeeper, topic: str
) -> None:
    topic_id = describe_topic(client, topic).topic_id
    gatekeeper.allows = lambda _: False
    by_id = MetadataRequest([MetadataRequestTopic(topic_id, None)])
    (answer,) = client.call(by_id, 12).topics
    assert (answer.error_code, answer.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    (result,) = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(None, topic_id)]), 6).responses
    assert (result.error_code, result.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    gatekeeper.allows = lambda question: question[0] is Operation.DESCRIBE
    (result,) = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(None, topic_id)]), 6).responses
    assert result.error_code == DENIED


def test_by_id_the_permission_is_asked_for_the_name_and_never_for_an_empty_one(
    client: WireClient, gatekeeper: Gatekeeper, topic: str
) -> None:
    topic_id = describe_topic(client, topic).topic_id
    for target in (topic_id, TopicId(b"\x09" * 16)):
        for partition in (0, 7):
            client.call(produce_request(target, batch_of(b"v"), partition=partition), 13)
            client.call(fetch_request(target, at(0, partition)), 18)
    assert {name for _, _, name in gatekeeper.asked} == {topic}
    gatekeeper.allows = lambda _: False
    response = client.call(produce_request(topic_id, batch_of(b"v")), 13)
    assert response.responses[0].partition_responses[0].error_code == DENIED
    response = client.call(fetch_request(topic_id, at(0)), 18)
    assert response.responses[0].partitions[0].error_code == DENIED


@pytest.mark.parametrize("version", [12, 14])
def test_reading_in_a_replicas_name_needs_the_clusters_permission(
    client: WireClient, gatekeeper: Gatekeeper, topic: str, version: int
) -> None:
    asked = FetchTopic(topic, describe_topic(client, topic).topic_id, [at(0)])
    gatekeeper.allows = lambda question: question[0] is not Operation.CLUSTER_ACTION
    response = client.call(FetchRequest(replica_id=2, min_bytes=1, topics=[asked]), version)
    assert (response.error_code, response.responses) == (CLUSTER_DENIED, ())


def test_settings_of_brokers_need_the_clusters_permission(client: WireClient, gatekeeper: Gatekeeper) -> None:
    gatekeeper.allows = lambda question: question[1] is not ResourceType.CLUSTER
    (result,) = client.call(DescribeConfigsRequest([DescribeConfigsResource(4, "1")]), 4).results
    assert (result.error_code, result.configs) == (CLUSTER_DENIED, ())
    entry = [incremental_alter_configs.AlterableConfig("num.partitions", 0, "3")]
    resource = incremental_alter_configs.AlterConfigsResource(4, "", entry)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest([resource])
    (result,) = client.call(request, 1).responses
    assert result.error_code == CLUSTER_DENIED


def test_authorized_operations_are_those_that_are_allowed(
    client: WireClient, gatekeeper: Gatekeeper, topic: str
) -> None:
    allowed = (Operation.DESCRIBE, Operation.READ)
    gatekeeper.allows = lambda question: question[0] in allowed
    request = MetadataRequest(
        [MetadataRequestTopic(name=topic)],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = client.call(request, 9)
    assert response.topics[0].topic_authorized_operations == 1 << Operation.DESCRIBE | 1 << Operation.READ
    assert response.cluster_authorized_operations == 1 << Operation.DESCRIBE


def test_one_topic_that_is_forbidden_does_not_keep_others_from_being_served(
    client: WireClient, gatekeeper: Gatekeeper, topic: str
) -> None:
    other = create_topic(client)
    gatekeeper.allows = lambda question: question[2] != topic
    data = [produce_request(name, batch_of(b"v")).topic_data[0] for name in (topic, other)]
    request = produce_request(topic, batch_of(b"v"))
    request.topic_data = data  # type: ignore[misc]
    response = client.call(request, 12)
    codes = [each.partition_responses[0].error_code for each in response.responses]
    assert codes == [DENIED, ErrorCode.NONE]
