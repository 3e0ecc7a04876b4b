"""The name under which a sink remembers the batches of a query: made once, kept inside its checkpoint.

Whoever deletes a checkpoint to begin anew deletes the id with it; the new query's batches, which count from
zero again, are then not taken for old ones.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

_FILE = "ottla-query-id"


def query_id(checkpoint: Path) -> str:
    path = checkpoint / _FILE
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        pass
    checkpoint.mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex[:16]
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="ascii") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    return made
