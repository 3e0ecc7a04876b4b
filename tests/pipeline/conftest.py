from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import BrokerProcess
from pipeline.commands import Ottla


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    with BrokerProcess(settings={"num.partitions": "2"}) as running:
        yield running


@pytest.fixture
def ottla(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ottla:
    monkeypatch.chdir(tmp_path)
    return Ottla(broker.bootstrap, capsys)
