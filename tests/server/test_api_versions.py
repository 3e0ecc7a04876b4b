"""ApiVersions: what is advertised is what is spoken, and any client can find out."""

from __future__ import annotations

import struct

import pytest

from calls import create_topic
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import APIS
from ottla.protocol.codec import decode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.server.routes import all_routes
from ottla.testing import BrokerProcess
from wire import WireClient

ADVERTISED = {
    "Produce": (0, 13),  # librdkafka looks for 0 (KAFKA-18659); 0 to 2 are refused
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "FindCoordinator": (0, 6),
    "ApiVersions": (0, 4),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
    "ConsumerGroupDescribe": (0, 1),
    "ConsumerGroupHeartbeat": (0, 1),
    "OffsetDelete": (0, 0),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 6),
    "OffsetForLeaderEpoch": (2, 4),
    "AddPartitionsToTxn": (0, 5),
    "AddOffsetsToTxn": (0, 4),
    "EndTxn": (0, 5),
    "WriteTxnMarkers": (1, 2),
    "TxnOffsetCommit": (0, 5),
    "DescribeProducers": (0, 0),
    "DescribeTransactions": (0, 0),
    "ListTransactions": (0, 1),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 4),
    "CreatePartitions": (0, 3),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeCluster": (0, 2),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
}


def ask(client: WireClient, version: int, name: str = "tests", software: str = "1.0") -> ApiVersionsResponse:
    response = client.call(ApiVersionsRequest(name, software), version)
    assert isinstance(response, ApiVersionsResponse)
    return response


def ranges(response: ApiVersionsResponse) -> dict[str, tuple[int, int]]:
    return {APIS[each.api_key].name: (each.min_version, each.max_version) for each in response.api_keys}


@pytest.mark.parametrize("version", range(5))
def test_every_version_tells_what_is_spoken(client: WireClient, version: int) -> None:
    response = ask(client, version)
    assert response.error_code == ErrorCode.NONE
    assert ranges(response) == ADVERTISED
    assert ranges(response) == {route.api.name: route.versions for route in all_routes()}
    keys = [each.api_key for each in response.api_keys]
    assert keys == sorted(keys)


def header(version: int, correlation_id: int, client_id: bytes = b"new") -> bytes:
    return struct.pack(">hhih", 18, version, correlation_id, len(client_id)) + client_id


@pytest.mark.parametrize("version", [5, 9, 32767, -1])
def test_an_unknown_version_is_answered_in_version_0(client: WireClient, version: int) -> None:
    client.send_frame(header(version, 99) + b"\0\x07unknown\0\x08whatever")
    frame = client.receive_frame()
    assert struct.unpack_from(">i", frame) == (99,)
    response, end = decode(ApiVersionsResponse, 0, frame, 4)
    assert end == len(frame)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ranges(response) == ADVERTISED
    assert ask(client, 3).error_code == ErrorCode.NONE  # the client steps down and goes on


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software"),
    [
        ("", "1.0"),
        ("x", ""),
        ("two words", "1.0"),
        ("-dash", "1.0"),
        ("x", "1.0-"),
        ("line\nbreak", "1.0"),
        ("x", "1.0\n"),
        ("ünïcode", "1"),
    ],
)
def test_software_that_would_not_be_harmless_in_a_log_line_is_refused(
    client: WireClient, version: int, name: str, software: str
) -> None:
    response = ask(client, version, name, software)
    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, ())
    assert ask(client, version, "apache-kafka-java", "3.9.0").error_code == ErrorCode.NONE


@pytest.mark.parametrize("key", [7, 4, -1, 999])
def test_apis_that_are_not_served_close_the_connection(broker: BrokerProcess, key: int) -> None:
    with WireClient(broker.bootstrap) as client:
        client.send_frame(struct.pack(">hhih", key, 0, 1, -1))
        assert client.is_closed_by_peer()
    assert f"API key {key} is not served here" in broker.output()


OUTSIDE = [
    (route.api.key, version)
    for route in all_routes()
    if route.api.name != "ApiVersions"
    for version in (route.versions[0] - 1, route.versions[1] + 1)
]


@pytest.mark.parametrize(("key", "version"), OUTSIDE)
def test_versions_outside_of_what_is_advertised_close_the_connection(
    broker: BrokerProcess, key: int, version: int
) -> None:
    with WireClient(broker.bootstrap) as client:
        client.send_frame(struct.pack(">hhihb", key, version, 1, -1, 0) + bytes(30))
        assert client.is_closed_by_peer()
    first, last = ADVERTISED[APIS[key].name]
    assert f"{APIS[key].name} v{version} is not spoken here, only {first} to {last}" in broker.output()


def test_a_client_without_a_name_is_served(broker: BrokerProcess) -> None:
    with WireClient(broker.bootstrap, client_id=None) as client:
        assert ask(client, 3).error_code == ErrorCode.NONE
        create_topic(client)


@pytest.mark.parametrize("version", [3, 4])
def test_features_that_clients_look_for_are_finalized(client: WireClient, version: int) -> None:
    answer = client.call(ApiVersionsRequest("tests", "1"), version)
    told = {each.name: each.max_version_level for each in answer.finalized_features}
    assert told == {"group.version": 1, "transaction.version": 2}
