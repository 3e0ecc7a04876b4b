"""A snapshot is one moment of the tree, whatever happens to the tree while it is written."""

from __future__ import annotations

import random

import pytest

from coordination.disk import content
from coordination.random_operations import SESSIONS, random_operation
from ottla.coordination import snapshots
from ottla.coordination.operations import Create, Delete, SetData
from ottla.coordination.snapshots import SnapshotWriter, load_snapshot
from ottla.coordination.znodes import Tree


def change(tree: Tree, rng: random.Random, times: int) -> None:
    for _ in range(times):
        txn, _ = tree.decide(random_operation(rng), rng.choice(SESSIONS), rng.randrange(1_000))
        if txn is not None:
            tree.apply(txn)


@pytest.mark.parametrize("seed", range(60))
def test_a_snapshot_holds_the_moment_it_began(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(snapshots, "SLICE_NODES", rng.choice((1, 2, 5)))
    tree = Tree()
    for _ in range(3):  # the marks of one snapshot must not confuse the next
        change(tree, rng, 60)
        before, ephemerals, zxid = content(tree), {**tree.ephemerals}, tree.last_zxid
        ephemerals = {session: set(paths) for session, paths in ephemerals.items()}
        writer = SnapshotWriter(tree, 7)
        data = b""
        while not writer.finished:
            change(tree, rng, rng.randrange(4))
            data += writer.next_chunk()
        loaded = load_snapshot(data, "snapshot")
        assert loaded is not None
        assert content(loaded) == before
        assert loaded.ephemerals == ephemerals
        assert loaded.last_zxid == writer.zxid == zxid


def test_a_slice_is_bounded_however_large_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SLICE_NODES", 10)
    tree = Tree()
    for number in range(95):
        txn, _ = tree.decide(Create(f"/{number:03}", bytes(100)), 1, 0)
        assert txn is not None
        tree.apply(txn)
    writer = SnapshotWriter(tree, 7)
    sizes = []
    while not writer.finished:
        sizes.append(len(writer.next_chunk()))
    assert len(sizes) == 10
    assert max(sizes) < 10 * 250


def test_a_node_that_goes_and_comes_back_is_the_old_one_in_the_snapshot() -> None:
    tree = Tree()
    steps = [Create("/a", b"old"), Create("/a/b", b"old")]
    later = [Delete("/a/b"), Delete("/a"), Create("/a", b"new"), SetData("/a", b"newer")]
    for step in steps:
        txn, _ = tree.decide(step, 1, 0)
        assert txn is not None
        tree.apply(txn)
    before = content(tree)
    writer = SnapshotWriter(tree, 7)
    for other in later:
        txn, _ = tree.decide(other, 1, 0)
        assert txn is not None
        tree.apply(txn)
    loaded = load_snapshot(writer.next_chunk(), "snapshot")
    assert loaded is not None
    assert content(loaded) == before


def test_damage_anywhere_is_noticed() -> None:
    tree = Tree()
    txn, _ = tree.decide(Create("/a", b"data"), 1, 0)
    assert txn is not None
    tree.apply(txn)
    data = SnapshotWriter(tree, 7).next_chunk()
    assert load_snapshot(data, "snapshot") is not None
    for position in range(len(data)):
        assert load_snapshot(data[:position], "snapshot") is None
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        assert load_snapshot(bytes(damaged), "snapshot") is None
    assert load_snapshot(data + b"x", "snapshot") is None
