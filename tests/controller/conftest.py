"""Every test with a running controller holds on the embedded tree, on a coordination service of ours in a
process of its own, and on an Apache ZooKeeper ensemble.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from controller.running import Chroot, Where
from interop import apache_zookeeper
from ottla.testing import CoordinationProcess

_numbers = itertools.count()


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with apache_zookeeper.ensemble(tmp_path_factory.mktemp("zookeeper"), servers=3) as servers:
        yield servers.addresses


@pytest.fixture(scope="session")
def alone() -> Iterator[str]:
    with CoordinationProcess() as service:
        yield service.zookeeper


_ELSEWHERE = [pytest.param(name, marks=pytest.mark.interop) for name in ("alone", "ensemble")]


@pytest.fixture(params=["embedded", *_ELSEWHERE])
def where(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param != "embedded":
        Where.chroot = Chroot(request.getfixturevalue(request.param), f"/controller-{next(_numbers)}")
    yield
    if Where.chroot is not None:
        Where.chroot.close()
        Where.chroot = None
