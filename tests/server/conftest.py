"""One broker for all tests of the wire; each test makes topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing import BrokerProcess
from wire import WireClient


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        assert process.running, process.output()
        assert "Traceback" not in process.output(), process.output()


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap) as connected:
        yield connected
