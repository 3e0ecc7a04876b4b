"""Whether a process that wrote its number down still lives."""

from __future__ import annotations

import os


def is_alive(pid: int) -> bool:
    """Also of another user's. A number that was given to a new process in the meantime counts as alive."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
