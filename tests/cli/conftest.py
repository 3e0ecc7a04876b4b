"""A user's home and the program for each test; one broker for the whole module where commands need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.program import Program
from ottla.testing import BrokerProcess


@pytest.fixture
def ottla(tmp_path: Path) -> Program:
    return Program(tmp_path)


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings={"group.initial.rebalance.delay.ms": "0"}) as running:
        yield running


@pytest.fixture
def client(tmp_path: Path, broker: BrokerProcess) -> Program:
    """The program with the module's broker as its cluster."""
    return Program(tmp_path, {"OTTLA_BOOTSTRAP": broker.bootstrap})
