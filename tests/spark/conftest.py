"""One Spark session and one broker for all tests of a worker process: a session takes five seconds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat.broker import unique_name
from ottla.client.admin import Admin
from ottla.testing import BrokerProcess

pytest.importorskip("pyspark")

SPARK_SETTINGS = {
    "spark__ui__enabled": "false",
    "spark__driver__host": "127.0.0.1",
    "spark__driver__bindAddress": "127.0.0.1",
    "spark__driver__memory": "600m",
    "spark__driver__extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts sooner
    "spark__sql__shuffle__partitions": "2",
    "spark__sql__session__timeZone": "UTC",
    "spark__sql__python__filterPushdown__enabled": "true",
    "spark__sql__streaming__numRecentProgressUpdates": "1000",
    "spark__python__worker__faulthandler__enabled": "true",
    "spark__ui__showConsoleProgress": "false",
    "spark__log__level": "ERROR",
}

NewTopic = Callable[..., str]


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture
def spark(warehouse: str) -> Any:
    """The one that is there, or a new one where a test of commands, in the same process, has ended it."""
    from ottla.spark.session import local_session

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return local_session("local[2]", spark__sql__warehouse__dir=warehouse, **SPARK_SETTINGS)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as client:
        yield client


@pytest.fixture
def new_topic(admin: Admin) -> NewTopic:
    """Creates a topic under a name nobody has used, and returns the name."""

    def create(partitions: int = 1, **configs: str) -> str:
        name = unique_name("spark")
        named = {key.replace("_", "."): value for key, value in configs.items()}
        admin.create_topic(name, partitions=partitions, replication_factor=1, configs=named)
        return name

    return create
