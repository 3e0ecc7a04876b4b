"""The collector of cycles is off while a broker starts, and on when it serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from calls import append, create_topic, values_from
from in_process import running_broker
from ottla.node import garbage
from wire import WireClient


@pytest.fixture
def _as_before() -> Iterator[None]:
    threshold = gc.get_threshold()
    yield
    gc.enable()
    gc.unfreeze()
    gc.set_threshold(*threshold)


@pytest.mark.usefixtures("_as_before")
def test_what_a_start_makes_is_left_alone_and_what_comes_later_is_collected() -> None:
    garbage.postpone()
    assert not gc.isenabled()
    garbage.settle()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] > 700


@pytest.mark.usefixtures("_as_before")
def test_requests_leave_no_cycles_for_the_collector(tmp_path: Path) -> None:
    """It would look for them while others wait, and until then all that a turn was asked stays in memory."""
    with running_broker(tmp_path) as running, WireClient(running.bootstrap) as client:
        topic = create_topic(client)
        for _ in range(10):  # modules, pools and tables get what they keep
            append(client, topic, b"x")
            values_from(client, topic)
        gc.collect()
        gc.disable()
        for _ in range(100):
            append(client, topic, b"x")
            values_from(client, topic)
        assert gc.collect() < 100, "each request leaves some"
