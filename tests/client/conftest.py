"""One broker for the client's tests: ours in a process of its own, or the one OTTLA_TEST_BOOTSTRAP names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from compat.broker import unique_name
from ottla.client.admin import Admin
from ottla.testing import BrokerProcess

NewTopicName = Callable[..., str]

QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "2000",
}


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("OTTLA_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with BrokerProcess(tmp_path_factory.mktemp("broker"), QUICK_GROUPS) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as client:
        yield client


@pytest.fixture(scope="session")
def new_topic(admin: Admin) -> NewTopicName:
    """Creates a topic under a name nobody has used, and returns the name."""

    def create(partitions: int = 1, **configs: str) -> str:
        name = unique_name("topic")
        named = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topic(name, partitions=partitions, replication_factor=1, configs=named)
        return name

    return create
