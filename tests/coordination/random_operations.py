"""Random operations on a small set of paths, so that they meet each other often; shared by several tests."""

from __future__ import annotations

import random

from ottla.coordination.acls import OPEN_ACL, Acl, Identity
from ottla.coordination.operations import (
    ANY_VERSION,
    NO_TTL,
    Check,
    CloseSession,
    Create,
    Delete,
    Multi,
    OpenSession,
    Operation,
    SetAcl,
    SetData,
    Step,
)

SESSIONS = (1, 2)
ALICE, BOB = Identity("digest", "alice:x"), Identity("digest", "bob:y")
WHO = (None, None, [], [ALICE], [ALICE, BOB])
_NAMES = ("a", "b", "c")
_LISTS = (
    OPEN_ACL,
    (Acl(31, *ALICE),),
    (Acl(1, "world", "anyone"), Acl(6, *ALICE), Acl(24, *BOB)),
    (Acl(31, "auth", ""),),
)


def random_operation(rng: random.Random) -> Operation:
    kind = rng.random()
    if kind < 0.02:
        return OpenSession(rng.choice(SESSIONS), rng.randrange(4_000, 40_000), rng.randbytes(16))
    if kind < 0.05:
        return CloseSession(rng.choice(SESSIONS))
    if kind < 0.25:
        return Multi([random_step(rng) for _ in range(rng.randrange(5))])
    return random_step(rng)


def random_step(rng: random.Random) -> Step:
    path = _random_path(rng)
    data = rng.choice((None, b"", rng.randbytes(rng.randrange(40))))
    version = rng.choice((ANY_VERSION, ANY_VERSION, 0, 1, 2))
    kind = rng.random()
    acl = rng.choice(_LISTS) if rng.random() < 0.2 else OPEN_ACL
    if kind < 0.5:
        owner = rng.choice(({}, {}, {"ephemeral": True}, {"container": True}, {"ttl_ms": 5}))
        options = {"ephemeral": False, "container": False, "ttl_ms": NO_TTL} | owner
        return Create(path, data, sequential=rng.random() < 0.3, acl=acl, **options)
    if kind < 0.55:
        return SetAcl(path, acl, version)
    if kind < 0.7:
        return SetData(path, data, version)
    if kind < 0.9:
        return Delete(path, version)
    return Check(path, version)


def _random_path(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(("/", "", "x", "/a/", "/a//b", "/.", "/a/.."))
    return "".join(f"/{rng.choice(_NAMES)}" for _ in range(rng.randrange(1, 4)))
