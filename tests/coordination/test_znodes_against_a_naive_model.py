"""Random operations give the same answers and the same tree as a model too simple to be wrong the same way.

The model keeps every node as a plain dictionary, runs everything on a copy, and knows nothing of plans,
transactions or overlays.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from coordination.random_operations import SESSIONS, random_operation
from ottla.coordination.operations import (
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    Operation,
    SetData,
    Step,
)
from ottla.coordination.txns import decode_txn, encode_txn
from ottla.coordination.znodes import Tree

Model = dict[str, dict[str, Any]]


class Failed(Exception):
    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.code = code


def new_model() -> Model:
    return {"/": new_node(b"", 0, 0, 0)}


def new_node(data: bytes | None, zxid: int, now_ms: int, owner: int) -> dict[str, Any]:
    return {
        "data": data,
        "czxid": zxid,
        "mzxid": zxid,
        "pzxid": zxid,
        "ctime": now_ms,
        "mtime": now_ms,
        "version": 0,
        "created": 0,
        "deleted": 0,
        "owner": owner,
    }


def children(model: Model, path: str) -> list[str]:
    prefix = path.rstrip("/") + "/"
    return [
        other[len(prefix) :] for other in model if other != "/" and other.rpartition("/")[0] + "/" == prefix
    ]


def legal(path: str) -> bool:
    if path == "/":
        return True
    names = path.split("/")
    return path.startswith("/") and all(name not in ("", ".", "..") for name in names[1:])


def run_step(model: Model, step: Step, zxid: int, now_ms: int, session: int) -> str | None:
    """Change the model; what a Create created."""
    sequential = isinstance(step, Create) and step.sequential
    if not legal(step.path + "0" if sequential else step.path):
        raise Failed(Code.BAD_ARGUMENTS)
    parent = step.path.rpartition("/")[0] or "/"
    if isinstance(step, Create):
        if parent not in model:
            raise Failed(Code.NO_NODE)
        path = step.path + (f"{model[parent]['created']:010d}" if sequential else "")
        if path in model:
            raise Failed(Code.NODE_EXISTS)
        if model[parent]["owner"]:
            raise Failed(Code.NO_CHILDREN_FOR_EPHEMERALS)
        model[path] = new_node(step.data, zxid, now_ms, session if step.ephemeral else 0)
        model[parent]["created"] += 1
        model[parent]["pzxid"] = zxid
        return path
    if isinstance(step, Delete) and step.path == "/":
        raise Failed(Code.BAD_ARGUMENTS)
    if step.path not in model:
        raise Failed(Code.NO_NODE)
    if step.version not in (-1, model[step.path]["version"]):
        raise Failed(Code.BAD_VERSION)
    if isinstance(step, Delete):
        if children(model, step.path):
            raise Failed(Code.NOT_EMPTY)
        del model[step.path]
        model[parent]["deleted"] += 1
        model[parent]["pzxid"] = zxid
    elif isinstance(step, SetData):
        node = model[step.path]
        node.update(data=step.data, version=node["version"] + 1, mzxid=zxid, mtime=now_ms)
    return None


def run(model: Model, operation: Operation, zxid: int, now_ms: int, session: int) -> tuple[Code, Model, Any]:
    """(code, the model afterwards, paths created)."""
    attempt = {path: dict(node) for path, node in model.items()}
    if isinstance(operation, CloseSession):
        owned = [path for path, node in model.items() if node["owner"] == operation.session_id]
        steps: list[Step] = [Delete(path) for path in owned]
    else:
        steps = list(operation.steps) if isinstance(operation, Multi) else [operation]
    try:
        paths = [run_step(attempt, step, zxid, now_ms, session) for step in steps]
    except Failed as failure:
        return failure.code, model, None
    return Code.OK, attempt, [] if isinstance(operation, CloseSession) else paths


def changes_something(operation: Operation, model: Model) -> bool:
    if isinstance(operation, CloseSession):
        return any(node["owner"] == operation.session_id for node in model.values())
    if isinstance(operation, Multi):
        return any(not isinstance(step, Check) for step in operation.steps)
    return not isinstance(operation, Check)


def shown(model: Model) -> dict[str, tuple[object, ...]]:
    return {
        path: (
            node["data"],
            node["czxid"],
            node["mzxid"],
            node["ctime"],
            node["mtime"],
            node["version"],
            node["created"] + node["deleted"],
            0,
            node["owner"],
            len(node["data"] or b""),
            len(children(model, path)),
            node["pzxid"],
        )
        for path, node in model.items()
    }


def tree_shown(tree: Tree) -> dict[str, tuple[object, ...]]:
    return {path: (node.data, *node.stat()) for path, node in tree.nodes.items()}


def check_seed(seed: int, operations: int) -> None:
    rng = random.Random(seed)
    tree, replayed, model = Tree(), Tree(), new_model()
    for number in range(operations):
        operation, session, now_ms = random_operation(rng), rng.choice(SESSIONS), 1_000 + number
        txn, result = tree.decide(operation, session, now_ms)
        changes = changes_something(operation, model)
        code, model, paths = run(model, operation, tree.last_zxid + 1, now_ms, session)
        assert result.code is code, operation
        assert (txn is not None) == (code is Code.OK and changes), operation
        if txn is not None:
            tree.apply(txn)
            replayed.apply(decode_txn(encode_txn(txn)))
        if paths:
            assert [step.path for step in result.steps] == paths
    assert tree_shown(tree) == shown(model)
    assert tree_shown(replayed) == tree_shown(tree)
    assert replayed.ephemerals == tree.ephemerals
    for path in model:
        assert tree.children(path) == sorted(children(model, path))


@pytest.mark.parametrize("block", range(10))
def test_random_operations(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        check_seed(seed, 150)


@pytest.mark.slow
def test_many_random_operations() -> None:
    for seed in range(1_000, 2_500):
        check_seed(seed, 300)
