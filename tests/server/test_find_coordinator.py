"""FindCoordinator: one broker coordinates every group; what is not offered is refused for good."""

from __future__ import annotations

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.mark.parametrize("version", range(4))
def test_versions_for_one_group(broker: BrokerProcess, client: WireClient, version: int) -> None:
    found = client.call(FindCoordinatorRequest(key="group"), version)
    assert (found.error_code, found.node_id) == (ErrorCode.NONE, 1)
    assert f"{found.host}:{found.port}" == broker.bootstrap


@pytest.mark.parametrize("version", range(4, 7))
def test_versions_for_many_groups(broker: BrokerProcess, client: WireClient, version: int) -> None:
    response = client.call(FindCoordinatorRequest(coordinator_keys=["a", "", "b"]), version)
    assert [found.key for found in response.coordinators] == ["a", "", "b"]
    assert [ErrorCode(found.error_code) for found in response.coordinators] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.NONE,
    ]
    for found in (response.coordinators[0], response.coordinators[2]):
        assert (found.node_id, f"{found.host}:{found.port}") == (1, broker.bootstrap)
    assert (response.coordinators[1].node_id, response.coordinators[1].port) == (-1, -1)


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_of_a_transactional_id_is_found(
    client: WireClient, broker: BrokerProcess, version: int
) -> None:
    if version < 4:
        found = client.call(FindCoordinatorRequest("id", 1), version)
    else:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=["id"])
        (found,) = client.call(request, version).coordinators
    assert found.error_code == ErrorCode.NONE
    assert (found.node_id, f"{found.host}:{found.port}") == (1, broker.bootstrap)


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("key_type", [2, 3, -1])
def test_other_kinds_are_refused_with_an_error_that_clients_do_not_retry(
    client: WireClient, version: int, key_type: int
) -> None:
    if version < 4:
        found = client.call(FindCoordinatorRequest("id", key_type), version)
    else:
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["id"])
        (found,) = client.call(request, version).coordinators
    assert found.error_code == ErrorCode.INVALID_REQUEST
    assert not ErrorCode(found.error_code).retriable
    assert found.error_message
    assert found.node_id == -1
