"""DescribeCluster: the brokers, the controller, and what the asker may do to the cluster."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.describe_cluster import DescribeClusterRequest
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.testing import BrokerProcess
from wire import WireClient

NOT_ASKED = -(2**31)


@pytest.mark.parametrize("version", range(3))
def test_every_version_tells_the_brokers(broker: BrokerProcess, client: WireClient, version: int) -> None:
    response = client.call(DescribeClusterRequest(), version)
    assert response.error_code == ErrorCode.NONE
    assert response.cluster_id == client.call(MetadataRequest([]), 12).cluster_id
    assert response.controller_id == 1
    (node,) = response.brokers
    assert (node.broker_id, f"{node.host}:{node.port}", node.rack) == (1, broker.bootstrap, None)
    assert not node.is_fenced
    assert response.endpoint_type == 1
    assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.parametrize("version", range(3))
def test_authorized_operations_are_told_to_those_who_ask(client: WireClient, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    operations = client.call(request, version).cluster_authorized_operations
    assert operations == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def test_fenced_brokers_may_be_asked_for(client: WireClient) -> None:
    assert len(client.call(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers) == 1


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_a_broker_does_not_answer_for_controllers(
    client: WireClient, version: int, endpoint_type: int, code: ErrorCode
) -> None:
    response = client.call(DescribeClusterRequest(endpoint_type=endpoint_type), version)
    assert (response.error_code, response.brokers) == (code, ())
    assert response.error_message
