"""Random operations give the same answers and the same tree as a model too simple to be wrong the same way.

The model keeps every node as a plain dictionary, runs everything on a copy, and knows nothing of plans,
transactions or overlays.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from coordination.random_operations import SESSIONS, WHO, random_operation
from ottla.coordination.acls import OPEN_ACL, READ_ACL, Acl, Identity
from ottla.coordination.operations import (
    Check,
    CloseSession,
    Code,
    Create,
    Delete,
    Multi,
    OpenSession,
    Operation,
    SetAcl,
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
    reserved = ("/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota")
    model = {path: new_node(b"", 0, 0, 0, OPEN_ACL) for path in reserved}
    model["/zookeeper/config"].update(acl=READ_ACL, aversion=-1)
    # They were there before anything was created.
    model["/"]["deleted"], model["/zookeeper"]["deleted"] = -1, -2
    return model


def new_node(data: bytes | None, zxid: int, now_ms: int, owner: int, acl: Any) -> dict[str, Any]:
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
        "acl": acl,
        "aversion": 0,
    }


def owner_of(step: Create, session: int) -> int:
    if step.ephemeral:
        return session
    if step.container:
        return -(2**63)
    return -(2**56) + step.ttl_ms if step.ttl_ms > 0 else 0


def allowed(node: dict[str, Any], permission: int, who: list[Identity] | None) -> bool:
    return who is None or any(
        perms & permission and (scheme == "world" or (scheme, name) in who)
        for perms, scheme, name in node["acl"]
    )


def resolved(acl: Any, who: list[Identity] | None) -> Any:
    if acl[0].scheme == "auth":
        acl = tuple(Acl(acl[0].perms, *identity) for identity in who or ())
    if not acl:
        raise Failed(Code.INVALID_ACL)
    return acl


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


def run_step(
    model: Model, step: Step, zxid: int, now_ms: int, session: int, who: list[Identity] | None
) -> str | None:
    """Change the model; what a Create created."""
    sequential = isinstance(step, Create) and step.sequential
    if not legal(step.path + "0" if sequential else step.path):
        raise Failed(Code.BAD_ARGUMENTS)
    parent = step.path.rpartition("/")[0] or "/"
    if isinstance(step, Create | SetAcl):
        acl = resolved(step.acl, who)
    if isinstance(step, Create):
        if parent not in model:
            raise Failed(Code.NO_NODE)
        if not allowed(model[parent], 4, who):
            raise Failed(Code.NO_AUTH)
        path = step.path + (f"{model[parent]['created']:010d}" if sequential else "")
        if path in model:
            raise Failed(Code.NODE_EXISTS)
        if model[parent]["owner"] > 0:
            raise Failed(Code.NO_CHILDREN_FOR_EPHEMERALS)
        model[path] = new_node(step.data, zxid, now_ms, owner_of(step, session), acl)
        model[parent]["created"] += 1
        model[parent]["pzxid"] = zxid
        return path
    if isinstance(step, Delete) and step.path == "/":
        raise Failed(Code.BAD_ARGUMENTS)
    if isinstance(step, Delete) and parent in model and not allowed(model[parent], 8, who):
        raise Failed(Code.NO_AUTH)
    if step.path not in model:
        raise Failed(Code.NO_NODE)
    node = model[step.path]
    needed = {Check: 1, SetData: 2, SetAcl: 16}.get(type(step))
    if needed is not None and not allowed(node, needed, who):
        raise Failed(Code.NO_AUTH)
    if step.version not in (-1, node["aversion" if isinstance(step, SetAcl) else "version"]):
        raise Failed(Code.BAD_VERSION)
    if isinstance(step, Delete):
        if children(model, step.path):
            raise Failed(Code.NOT_EMPTY)
        del model[step.path]
        model[parent]["deleted"] += 1
        model[parent]["pzxid"] = zxid
    elif isinstance(step, SetData):
        node.update(data=step.data, version=node["version"] + 1, mzxid=zxid, mtime=now_ms)
    elif isinstance(step, SetAcl):
        node.update(acl=acl, aversion=node["aversion"] + 1)
    return None


def run(
    model: Model, operation: Operation, zxid: int, now_ms: int, session: int, who: list[Identity] | None
) -> tuple[Code, Model, Any]:
    """(code, the model afterwards, paths created)."""
    attempt = {path: dict(node) for path, node in model.items()}
    steps: list[Step] = []
    if isinstance(operation, CloseSession):
        owned = [path for path, node in model.items() if node["owner"] == operation.session_id]
        steps, who = [Delete(path) for path in owned], None
    elif isinstance(operation, OpenSession):
        pass
    else:
        steps = list(operation.steps) if isinstance(operation, Multi) else [operation]
    try:
        paths = [run_step(attempt, step, zxid, now_ms, session, who) for step in steps]
    except Failed as failure:
        return failure.code, model, None
    return Code.OK, attempt, [] if isinstance(operation, CloseSession) else paths


def changes_something(operation: Operation, model: Model, sessions: set[int]) -> bool:
    if isinstance(operation, OpenSession):
        return True
    if isinstance(operation, CloseSession):
        return operation.session_id in sessions or any(
            node["owner"] == operation.session_id for node in model.values()
        )
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
            node["aversion"],
            node["owner"],
            len(node["data"] or b""),
            len(children(model, path)),
            node["pzxid"],
            node["acl"],
        )
        for path, node in model.items()
    }


def tree_shown(tree: Tree) -> dict[str, tuple[object, ...]]:
    return {path: (node.data, *node.stat(), node.acl) for path, node in tree.nodes.items()}


def check_seed(seed: int, operations: int) -> None:
    rng = random.Random(seed)
    tree, replayed, model = Tree(), Tree(), new_model()
    sessions: set[int] = set()
    for number in range(operations):
        operation, session, now_ms = random_operation(rng), rng.choice(SESSIONS), 1_000 + number
        who = rng.choice(WHO)
        txn, result = tree.decide(operation, session, now_ms, who)
        changes = changes_something(operation, model, sessions)
        code, model, paths = run(model, operation, tree.last_zxid + 1, now_ms, session, who)
        if isinstance(operation, OpenSession):
            sessions.add(operation.session_id)
        elif isinstance(operation, CloseSession):
            sessions.discard(operation.session_id)
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
    assert replayed.sessions == tree.sessions
    assert tree.sessions.keys() == sessions
    assert tree.fading.keys() == {path for path, node in model.items() if node["owner"] < 0}
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
