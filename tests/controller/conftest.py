"""Every test with a running controller holds on the embedded tree and on an Apache ZooKeeper ensemble."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from controller.running import Chroot, Where
from interop.apache_zookeeper import Ensemble, ensemble

_numbers = itertools.count()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    with ensemble(tmp_path_factory.mktemp("zookeeper"), servers=3) as servers:
        yield servers


@pytest.fixture(params=["embedded", pytest.param("ensemble", marks=pytest.mark.interop)])
def where(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "ensemble":
        servers = request.getfixturevalue("zookeeper")
        Where.chroot = Chroot(servers.addresses, f"/controller-{next(_numbers)}")
    yield
    if Where.chroot is not None:
        Where.chroot.close()
        Where.chroot = None
