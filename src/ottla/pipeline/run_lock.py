"""One run of a pipeline at a time: two would share checkpoints, and Spark sees it when one has lost."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.pipeline.definition import Pipeline
from ottla.pipeline.problems import PipelineError

_FILE = "run.lock"


@contextmanager
def alone(pipeline: Pipeline) -> Iterator[None]:
    """Raises PipelineError when it runs elsewhere. The lock ends with its process, however that ends."""
    pipeline.state.mkdir(parents=True, exist_ok=True)
    with (pipeline.state / _FILE).open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise PipelineError(
                f"{pipeline.name} runs already, as process {file.read().strip() or 'unknown'}",
                f"`ottla pipeline status {pipeline.folder}` tells how it does; stop it first",
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def last_runner(pipeline: Pipeline) -> int | None:
    """The process that took the lock last; None: nobody did. Does not touch the lock."""
    try:
        return int((pipeline.state / _FILE).read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None
