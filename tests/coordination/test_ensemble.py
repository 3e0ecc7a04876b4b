"""An ensemble that cannot be reached is told as cause and cure."""

from __future__ import annotations

import socket
import sys

import pytest

from ottla.coordination.ensemble import KazooCoordination
from ottla.coordination.kazoo_words import EnsembleUnreachable
from ottla.coordination.mirror import Mirror
from ottla.coordination.stat import Stat


def open_coordination(hosts: str) -> KazooCoordination:
    return KazooCoordination(
        hosts, lambda call: None, lambda: None, session_timeout_ms=4_000, connection_timeout_ms=200
    )


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(EnsembleUnreachable, match=f"127.0.0.1:{port}.*start the ensemble, or correct zoo"):
        open_coordination(f"127.0.0.1:{port}").start()


def test_no_kazoo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    with pytest.raises(EnsembleUnreachable, match=r"pip install 'ottla\[zookeeper\]'"):
        open_coordination("127.0.0.1:2181")


def test_a_mirror_forgets_what_is_below() -> None:
    mirror = Mirror()
    stat = Stat(*[0] * 11)
    for path in ("/", "/a", "/a/b", "/a/b/c", "/d"):
        mirror.keep(path, b"", stat)
    mirror.forget("/a")
    assert mirror.children("/") == ["d"]
    assert (mirror.read("/a/b/c"), mirror.exists("/a"), mirror.children("/a")) == (None, None, None)
    mirror.keep_names("/", ["e"])
    assert (mirror.children("/"), mirror.exists("/d")) == (["e"], None)
