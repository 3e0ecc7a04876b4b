"""The few names of the `cython` module that `kernel` uses, for running it uncompiled where Cython is missing.

Types mostly stand in annotations, which nobody evaluates; so there is little to stand in for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False
longlong = int
ulonglong = int


def declare(_kind: object, value: T) -> T:
    return value


def cfunc(function: T) -> T:
    return function


inline = cfunc
cclass = cfunc


def exceptval(*, check: bool) -> Callable[[T], T]:
    return cfunc


class _WithoutGil(nullcontext[None]):
    """`@nogil` on a function and `with nogil:` in one."""

    def __call__(self, function: T) -> T:
        return function


nogil: Any = _WithoutGil()
