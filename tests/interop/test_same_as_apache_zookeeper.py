"""The same requests, made of Apache ZooKeeper and of us by kazoo: every answer must be the same.

Only what must differ is left out: zxids, times and session numbers. Ours are compared by their order instead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, make_acl, make_digest_acl

from interop.apache_zookeeper import ensemble
from ottla.testing import CoordinationProcess

pytestmark = pytest.mark.interop

_NAMES = ("a", "b", "c")
_ALICE, _BOB = ("digest", "alice:secret"), ("digest", "bob:secret")
_ACLS: list[list[ACL]] = [
    OPEN_ACL_UNSAFE,
    [make_digest_acl("alice", "secret", all=True)],
    [make_digest_acl("alice", "secret", read=True, write=True), make_acl("world", "anyone", create=True)],
    [make_acl("ip", "127.0.0.1", all=True)],
    [make_acl("ip", "127.0.0.0/8", read=True), make_digest_acl("bob", "secret", admin=True, delete=True)],
    [ACL(31, Id("auth", ""))],
    [ACL(31, Id("world", "nobody"))],
    [ACL(31, Id("ip", "1.2.3"))],
    [ACL(31, Id("digest", "x"))],
    [ACL(31, Id("no-such-scheme", "x"))],
    [],
]

Request = Callable[[KazooClient], Any]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder: Path = tmp_path_factory.mktemp("same")
    with ensemble(folder, servers=1) as apache, CoordinationProcess() as ours:
        yield apache.addresses, ours.zookeeper


def clients(address: str, chroot: str) -> list[KazooClient]:
    """Alice, Bob, and somebody who proves nothing."""
    made = []
    for auth in ([_ALICE], [_BOB], []):
        client = KazooClient(address + chroot, auth_data=auth, timeout=30)
        client.start_async().wait(60)
        assert client.connected
        made.append(client)
    made[2].ensure_path("/")
    return made


def path(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return "/"
    return "".join(f"/{rng.choice(_NAMES)}" for _ in range(rng.randrange(1, 4)))


def request(rng: random.Random) -> tuple[str, Request]:
    """A description, and what is asked."""
    kind = rng.choice(("create", "create", "create", "delete", "set", "acl", "multi", "read", "read", "read"))
    where, version = path(rng), rng.choice((-1, -1, 0, 1))
    data = rng.choice((b"", rng.randbytes(rng.randrange(20))))
    acl = rng.choice(_ACLS) if rng.random() < 0.6 else OPEN_ACL_UNSAFE
    if kind == "create":
        options = {"ephemeral": rng.random() < 0.2, "sequence": rng.random() < 0.3, "acl": acl}
        return f"create {where} {options}", lambda one: one.create(where, data, include_data=True, **options)
    if kind == "delete":
        return f"delete {where} {version}", lambda one: one.delete(where, version)
    if kind == "set":
        return f"set {where} {version}", lambda one: one.set(where, data, version)
    if kind == "acl":
        return f"acl {where} {version} {acl}", lambda one: one.set_acls(where, acl, version)
    if kind == "multi":
        return multi(rng)
    reads: dict[str, Request] = {
        "get": lambda one: one.get(where),
        "exists": lambda one: one.exists(where),
        "children": lambda one: one.get_children(where, include_data=True),
        "acls": lambda one: one.get_acls(where),
    }
    name = rng.choice(list(reads))
    return f"{name} {where}", reads[name]


def multi(rng: random.Random) -> tuple[str, Request]:
    steps = []
    for _ in range(rng.randrange(1, 5)):
        where, version = path(rng), rng.choice((-1, 0, 1))
        steps.append(
            rng.choice(
                (
                    ("create", where, b"x", OPEN_ACL_UNSAFE, False, rng.random() < 0.3),
                    ("create", where, b"x", rng.choice(_ACLS), False, False),
                    ("delete", where, version),
                    ("set_data", where, b"y", version),
                    ("check", where, version),
                )
            )
        )

    def commit(one: KazooClient) -> Any:
        transaction = one.transaction()
        for name, *arguments in steps:
            getattr(transaction, name)(*arguments)
        return transaction.commit()

    return f"multi {steps}", commit


def answer(client: KazooClient, asked: Request) -> Any:
    try:
        return shown(asked(client), client.client_id[0])
    except KazooException as error:
        return type(error).__name__


def shown(value: Any, session: int) -> Any:
    """What must be the same."""
    if isinstance(value, ZnodeStat):
        owner = value.ephemeralOwner
        mine = "mine" if owner == session else bool(owner)
        numbers = (value.version, value.cversion, value.aversion, value.dataLength, value.numChildren)
        return *numbers, mine, value.czxid <= value.mzxid, value.czxid <= value.pzxid
    if isinstance(value, KazooException):
        return type(value).__name__
    if isinstance(value, tuple | list) and not isinstance(value, ACL):
        parts = [shown(part, session) for part in value]
        return sorted(parts) if parts and all(isinstance(part, str) for part in parts) else parts
    return value


@pytest.mark.parametrize("seed", range(6))
def test_every_answer_is_the_same(both: tuple[str, str], seed: int) -> None:
    rng = random.Random(seed)
    apache, ours = (clients(address, f"/seed-{seed}") for address in both)
    try:
        asked: list[str] = []
        for _ in range(400):
            who = rng.randrange(3)
            name, what = request(rng)
            asked.append(f"{who}: {name}")
            theirs, mine = answer(apache[who], what), answer(ours[who], what)
            assert mine == theirs, "\n".join(asked[-15:])
    finally:
        for client in (*apache, *ours):
            client.stop()
            client.close()
