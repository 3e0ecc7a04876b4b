"""ListConfigResources: the names of everything that has settings."""

from __future__ import annotations

import pytest

from calls import create_topic
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from wire import WireClient

TOPIC, BROKER = 2, 4


def ask(client: WireClient, *types: int) -> ListConfigResourcesResponse:
    response = client.call(ListConfigResourcesRequest(types), 1)
    assert isinstance(response, ListConfigResourcesResponse)
    return response


def test_version_0_lists_client_metrics_of_which_there_are_none(client: WireClient) -> None:
    response = client.call(ListConfigResourcesRequest(), 0)
    assert (response.error_code, response.config_resources) == (ErrorCode.NONE, ())


def test_all_types_when_none_is_named(client: WireClient) -> None:
    topic = create_topic(client)
    response = ask(client)
    assert response.error_code == ErrorCode.NONE
    found = {(each.resource_type, each.resource_name) for each in response.config_resources}
    assert {(TOPIC, topic), (BROKER, "1")} <= found
    assert {kind for kind, _ in found} == {TOPIC, BROKER}


def test_only_the_types_that_were_asked_for(client: WireClient) -> None:
    topic = create_topic(client)
    topics = ask(client, TOPIC).config_resources
    assert {each.resource_type for each in topics} == {TOPIC}
    assert topic in {each.resource_name for each in topics}
    (broker,) = ask(client, BROKER).config_resources
    assert (broker.resource_type, broker.resource_name) == (BROKER, "1")


@pytest.mark.parametrize("kind", [8, 16, 32])
def test_types_of_which_there_are_none_here(client: WireClient, kind: int) -> None:
    response = ask(client, kind)
    assert (response.error_code, response.config_resources) == (ErrorCode.NONE, ())


@pytest.mark.parametrize("kind", [0, 1, 3, 127])
def test_types_that_do_not_exist(client: WireClient, kind: int) -> None:
    response = ask(client, TOPIC, kind)
    assert (response.error_code, response.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, ())
