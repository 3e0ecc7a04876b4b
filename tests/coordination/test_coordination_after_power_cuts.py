"""The plug is pulled at any moment, again and again: what was durable is there, and nothing that never was.

Each life of the process works on the disk that the last cut (or kill) left: random operations, rounds with
operations submitted while they run, snapshots in slices and the removal of old files. The state found at the
next start must be the state after one of the transactions from the last durable to the last submitted one.
"""

from __future__ import annotations

import random

import pytest

from coordination.disk import LoggedTree, content, file_names, tree_after
from coordination.random_operations import SESSIONS, random_operation
from faults.power_cut import PowerCut, SimulatedFiles
from ottla.coordination import snapshots
from ottla.coordination.operations import SetData
from ottla.coordination.txn_log import SNAPSHOTS_KEPT
from ottla.coordination.txns import Txn


class Life:
    """One run of the process, until the plug is pulled."""

    def __init__(
        self, rng: random.Random, files: SimulatedFiles, history: list[Txn], durable_zxid: int
    ) -> None:
        self.rng = rng
        self.files = files
        self.history = history
        self.durable_zxid = durable_zxid
        files.stop_at = files.operations + rng.choice((rng.randrange(1, 10), rng.randrange(1, 120)))

    def run(self) -> None:
        try:
            logged = LoggedTree(self.files, self.history, snapshot_log_bytes=self.rng.choice((300, 3_000)))
            self.check(logged)
            while True:
                self.round(logged)
        except PowerCut:
            pass

    def check(self, logged: LoggedTree) -> None:
        found = logged.tree.last_zxid
        assert self.durable_zxid <= found <= len(self.history), "acknowledged changes are lost, or invented"
        assert content(logged.tree) == content(tree_after(self.history, found))
        del self.history[found:]
        self.durable_zxid = found

    def round(self, logged: LoggedTree) -> None:
        self.submit(logged)
        ticket = logged.log.begin_sync()
        self.submit(logged)
        if ticket is not None:
            ticket.run()
            self.submit(logged)
            logged.log.finish_sync(ticket)
            self.durable_zxid = logged.log.durable_zxid

    def submit(self, logged: LoggedTree) -> None:
        for _ in range(self.rng.randrange(4)):
            logged.do(random_operation(self.rng), self.rng.choice(SESSIONS), self.rng.randrange(1_000))


def live_through_cuts(seed: int, cuts: int) -> None:
    rng = random.Random(seed)
    files = SimulatedFiles()
    files.has_direct = seed % 4 != 0
    history: list[Txn] = []
    durable_zxid = 0
    for _ in range(cuts):
        life = Life(rng, files, history, durable_zxid)
        life.run()
        durable_zxid = life.durable_zxid
        if rng.random() < 0.7:  # else the process was killed, and the page cache is still there
            files = files.cut(rng.randrange(1 << 30))
    files.stop_at = None
    logged = LoggedTree(files, history, snapshot_log_bytes=300)
    assert durable_zxid <= logged.tree.last_zxid
    assert content(logged.tree) == content(tree_after(history, logged.tree.last_zxid))
    for _ in range(40):  # some snapshots later
        logged.do(SetData("/", bytes(1_000)))
        logged.sync()
    assert len(file_names(files)) <= 2 * SNAPSHOTS_KEPT + 1, "files that nobody needs any more"


@pytest.mark.parametrize("block", range(10))
def test_no_cut_loses_or_invents_a_change(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SLICE_NODES", 3)
    for seed in range(block * 40, block * 40 + 40):
        live_through_cuts(seed, 4)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_no_cut_of_many_loses_or_invents_a_change(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "SLICE_NODES", 3)
    for seed in range(10_000 + block * 1_000, 10_000 + block * 1_000 + 1_000):
        live_through_cuts(seed, 6)
