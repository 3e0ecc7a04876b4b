"""Random operations on a small set of paths, so that they meet each other often; shared by several tests."""

from __future__ import annotations

import random

from ottla.coordination.operations import (
    ANY_VERSION,
    Check,
    CloseSession,
    Create,
    Delete,
    Multi,
    Operation,
    SetData,
    Step,
)

SESSIONS = (1, 2)
_NAMES = ("a", "b", "c")


def random_operation(rng: random.Random) -> Operation:
    kind = rng.random()
    if kind < 0.03:
        return CloseSession(rng.choice(SESSIONS))
    if kind < 0.25:
        return Multi([random_step(rng) for _ in range(rng.randrange(5))])
    return random_step(rng)


def random_step(rng: random.Random) -> Step:
    path = _random_path(rng)
    data = rng.choice((None, b"", rng.randbytes(rng.randrange(40))))
    version = rng.choice((ANY_VERSION, ANY_VERSION, 0, 1, 2))
    kind = rng.random()
    if kind < 0.5:
        return Create(path, data, ephemeral=rng.random() < 0.2, sequential=rng.random() < 0.3)
    if kind < 0.7:
        return SetData(path, data, version)
    if kind < 0.9:
        return Delete(path, version)
    return Check(path, version)


def _random_path(rng: random.Random) -> str:
    if rng.random() < 0.03:
        return rng.choice(("/", "", "x", "/a/", "/a//b", "/.", "/a/.."))
    return "".join(f"/{rng.choice(_NAMES)}" for _ in range(rng.randrange(1, 4)))
