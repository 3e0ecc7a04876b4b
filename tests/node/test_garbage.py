"""The collector of cycles is off while a broker starts, and on when it serves."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ottla.node import garbage


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
