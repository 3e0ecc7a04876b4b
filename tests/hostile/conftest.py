"""Brokers to attack: one with the kernel as installed, one with its uncompiled source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostile import figures
from hostile.ground import Ground

SETTINGS = {"auto.create.topics.enable": "false", "num.partitions": "1"}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    found = Ground(tmp_path_factory.mktemp("broker"), SETTINGS)
    yield found
    found.stop()


@pytest.fixture(scope="module", params=["compiled", "python"])
def ground_of_each_kernel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    kernel = "python" if request.param == "python" else None
    found = Ground(tmp_path_factory.mktemp("broker"), SETTINGS, kernel)
    yield found
    found.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if figures.noted():
        terminalreporter.section("what attacks cost")
        for line in figures.noted():
            terminalreporter.write_line(line)
