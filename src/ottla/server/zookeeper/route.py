"""How one kind of request becomes a call of the room, and how its answer becomes bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.protocol.primitives import Buffer


class Route:
    __slots__ = ("decode", "encode", "frequent")

    def __init__(
        self,
        decode: Callable[[Buffer, int], tuple[Any, int]],
        encode: Callable[[Any], bytes],
        frequent: Callable[[Buffer], Any] | None = None,
    ) -> None:
        self.decode = decode  # what is asked for, and where its bytes end
        self.encode = encode  # the body of an answer without an error
        self.frequent = frequent  # a quicker `decode` that may leave the work to it: see frequent_requests
