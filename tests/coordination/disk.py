"""A tree and its log on a simulated disk, for the tests of durability."""

from __future__ import annotations

from faults.power_cut import SimulatedFiles
from ottla.coordination.operations import Operation
from ottla.coordination.txn_log import TxnLog
from ottla.coordination.txns import Txn
from ottla.coordination.znodes import Tree
from ottla.log import ballast

DIRECTORY = "/coordination"


class LoggedTree:
    """Keeps every transaction it logged, so that a test can tell which states are possible after a cut."""

    def __init__(
        self, files: SimulatedFiles, history: list[Txn] | None = None, snapshot_log_bytes: int = 1 << 30
    ) -> None:
        self.log = TxnLog(files, DIRECTORY, snapshot_log_bytes)
        self.tree = self.log.tree
        self.history = [] if history is None else history

    def do(self, operation: Operation, session_id: int = 1, now_ms: int = 0) -> None:
        txn, _ = self.tree.decide(operation, session_id, now_ms)
        if txn is not None:
            self.history.append(txn)
            self.tree.apply(txn)
            self.log.append(txn)

    def sync(self) -> None:
        while (ticket := self.log.begin_sync()) is not None:
            ticket.run()
            self.log.finish_sync(ticket)


def content(tree: Tree) -> dict[str, tuple[object, ...]]:
    """Everything a client could see of the tree, and what it was promised."""
    nodes: dict[str, tuple[object, ...]] = {
        path: (node.data, node.acl, frozenset(node.children or ()), *node.stat())
        for path, node in tree.nodes.items()
    }
    return nodes | {f"session {number}": tuple(terms) for number, terms in tree.sessions.items()}


def tree_after(history: list[Txn], zxid: int) -> Tree:
    tree = Tree()
    for txn in history[:zxid]:
        tree.apply(txn)
    return tree


def file_names(files: SimulatedFiles) -> list[str]:
    """Of logs and snapshots, finished or not."""
    return [name for name, _ in files.list_directory(DIRECTORY) if name != ballast.FILE_NAME]


def overwrite(files: SimulatedFiles, name: str, data: bytes) -> None:
    """Put other bytes into a file, as a failing disk would."""
    path = f"{DIRECTORY}/{name}"
    files.remove(path)
    handle = files.create(path)
    handle.append([data])
    handle.sync()
    handle.close()
    files.sync_directory(DIRECTORY)


def read(files: SimulatedFiles, name: str) -> bytes:
    return files.read_all(f"{DIRECTORY}/{name}")
