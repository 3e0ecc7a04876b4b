"""Waiting for what may follow an acknowledged change a little later, as metadata does on Kafka with KRaft."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
