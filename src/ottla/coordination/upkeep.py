"""Nodes whose time has come go: containers that are empty again, nodes with a TTL that nobody used. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.coordination.client import LocalCoordination
from ottla.coordination.nodes import Node
from ottla.coordination.operations import Delete
from ottla.coordination.owners import ttl_ms

PASS_MS = 5_000
"""How often every such node is looked at. ZooKeeper takes a minute; here it is a matter of microseconds."""

_NODES_PER_TICK = 1_000
"""At most about a millisecond of the owner's time."""

_NEVER_USED_MS = 5 * 60 * 1000
"""A container that never had a child stays this long: whoever made it is about to use it."""


class Upkeep:
    def __init__(self, coordination: LocalCoordination) -> None:
        self._coordination = coordination
        self._pass: Iterator[str] = iter(())  # what is left to look at
        self._next_pass_ms = 0

    def tick(self, now_ms: int, wall_ms: int) -> None:
        nodes = self._coordination.tree.nodes
        for _ in range(_NODES_PER_TICK):
            path = next(self._pass, None)
            if path is None:
                break
            node = nodes.get(path)
            if node is not None and _is_over(node, wall_ms):
                self._coordination.submit(Delete(path), lambda _: None)
        else:
            return
        if now_ms >= self._next_pass_ms:
            self._next_pass_ms = now_ms + PASS_MS
            self._pass = iter(list(self._coordination.tree.fading))


def _is_over(node: Node, wall_ms: int) -> bool:
    if node.child_count:
        return False
    lifetime_ms = ttl_ms(node.ephemeral_owner)
    if lifetime_ms is not None:
        return wall_ms - node.mtime_ms > lifetime_ms
    return node.child_creations > 0 or wall_ms - node.mtime_ms > _NEVER_USED_MS
