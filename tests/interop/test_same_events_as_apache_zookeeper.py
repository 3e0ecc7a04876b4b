"""The same watches and changes at Apache ZooKeeper and at us: every event must be the same.

With every kind of watch: left by reads, persistent, recursive; checked and removed by each of their types.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from interop.apache_zookeeper import ensemble
from ottla.client.zookeeper import ZooKeeperClient, ZooKeeperError
from ottla.protocol.zookeeper.operations import OpCode
from ottla.testing import CoordinationProcess

pytestmark = pytest.mark.interop

_NAMES = ("a", "b")
_WATCH_TYPES = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    with ensemble(tmp_path_factory.mktemp("same"), servers=1) as apache, CoordinationProcess() as ours:
        yield apache.addresses, ours.zookeeper


class Watched:
    """Somebody who watches and somebody who changes, below a node of their own."""

    def __init__(self, address: str, root: str) -> None:
        host, _, port = address.rpartition(":")
        self.watching, self.changing = (ZooKeeperClient(host, int(port), timeout_ms=60_000) for _ in range(2))
        self.changing.create(root, b"")

    def events(self) -> list[tuple[int, str]]:
        """What there is to hear so far; what one change fires is in no particular order."""
        self.watching.request(OpCode.SYNC, "/")
        return sorted((event.type, event.path) for event, _ in self.watching.take_events())

    def close(self) -> None:
        self.watching.close()
        self.changing.close()


Action = Callable[[Watched], Any]


def action(rng: random.Random, root: str) -> tuple[str, Action]:
    path = root + "".join(f"/{rng.choice(_NAMES)}" for _ in range(rng.randrange(3)))
    watch_type = rng.choice(_WATCH_TYPES)
    watches: dict[str, Action] = {
        "get": lambda one: one.watching.get(path, watch=True),
        "exists": lambda one: one.watching.exists(path, watch=True),
        "children": lambda one: one.watching.children(path, watch=True),
        "persistent": lambda one: one.watching.watch(path),
        "recursive": lambda one: one.watching.watch(path, recursive=True),
        f"check {watch_type}": lambda one: one.watching.request(OpCode.CHECK_WATCHES, path, watch_type),
        f"remove {watch_type}": lambda one: one.watching.request(OpCode.REMOVE_WATCHES, path, watch_type),
    }
    changes: dict[str, Action] = {
        "create": lambda one: one.changing.create(path, b""),
        "set": lambda one: one.changing.set(path, b"x"),
        "delete": lambda one: one.changing.delete(path),
    }
    some = rng.choice((watches, changes, changes))
    name = rng.choice(list(some))
    return f"{name} {path}", some[name]


def outcome(watched: Watched, do: Action) -> int:
    try:
        do(watched)
    except ZooKeeperError as error:
        return error.code
    return 0


@pytest.mark.parametrize("seed", range(6))
def test_every_event_is_the_same(both: tuple[str, str], seed: int) -> None:
    rng = random.Random(seed)
    root = f"/events-{seed}"
    apache, ours = (Watched(address, root) for address in both)
    try:
        asked: list[str] = []
        heard = 0
        for _ in range(500):
            name, do = action(rng, root)
            asked.append(name)
            assert outcome(ours, do) == outcome(apache, do), "\n".join(asked[-15:])
            events = ours.events()
            assert events == apache.events(), "\n".join(asked[-15:])
            heard += len(events)
        assert heard > 50
    finally:
        apache.close()
        ours.close()
