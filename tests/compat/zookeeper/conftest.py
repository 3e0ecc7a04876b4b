"""One coordination service for all tests with kazoo, and clients in a part of the tree of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient

from ottla.testing import CoordinationProcess

START_SECONDS = 30
_numbers = itertools.count()

Connect = Callable[..., KazooClient]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinationProcess]:
    settings = {"tickTime": "200", "4lw.commands.whitelist": "*", "maxClientCnxns": "0"}
    with CoordinationProcess(tmp_path_factory.mktemp("coordination"), settings) as process:
        yield process


@pytest.fixture
def connect(service: CoordinationProcess) -> Iterator[Connect]:
    """Makes started clients whose root is a node of this test; they are stopped at the end."""
    clients: list[KazooClient] = []
    root = f"/test-{next(_numbers)}"
    with_root = KazooClient(service.zookeeper)
    with_root.start(START_SECONDS)
    with_root.create(root)

    def connect(**options: object) -> KazooClient:
        client = KazooClient(service.zookeeper + root, **{"timeout": 4.0, **options})
        clients.append(client)
        client.start(START_SECONDS)
        return client

    clients.append(with_root)
    yield connect
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def client(connect: Connect) -> KazooClient:
    return connect()
