"""One broker for all tests with stock clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.admins.admin import Admin
from compat.admins.confluent import ConfluentAdmin
from compat.admins.kafka_python import KafkaPythonAdmin
from compat.broker import CreateTopic, running_broker, topic_creator


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def create_topic(bootstrap: str) -> CreateTopic:
    return topic_creator(bootstrap)


@pytest.fixture(params=[ConfluentAdmin, KafkaPythonAdmin], ids=lambda admin: admin.name)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Admin]:
    """Each stock admin client in turn."""
    client = request.param(bootstrap)
    yield client
    client.close()


@pytest.fixture
def python_admin(bootstrap: str) -> Iterator[KafkaPythonAdmin]:
    """kafka-python's admin client, for what no other one asks."""
    client = KafkaPythonAdmin(bootstrap)
    yield client
    client.close()
