"""One broker for all tests of the wire; each test makes topics of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ottla.testing import BrokerProcess
from wire import WireClient

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}  # else first members wait for three seconds


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker"), SETTINGS) as process:
        yield process
        assert process.running, process.output()
        assert "Traceback" not in process.output(), process.output()


Connect = Callable[[], WireClient]


@pytest.fixture
def connect(broker: BrokerProcess) -> Iterator[Connect]:
    """Connections, as many as a test needs; all are closed after it."""
    with ExitStack() as clients:
        yield lambda: clients.enter_context(WireClient(broker.bootstrap))


@pytest.fixture
def client(connect: Connect) -> WireClient:
    return connect()


@pytest.fixture
def reader(connect: Connect) -> WireClient:
    """A second connection, for a request that waits."""
    return connect()
