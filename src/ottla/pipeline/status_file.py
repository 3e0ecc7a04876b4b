"""What a run tells about itself, for whoever asks from another terminal: one JSON file, replaced whole."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from ottla.model.processes import is_alive
from ottla.pipeline.definition import Pipeline
from ottla.pipeline.progress import Progress
from ottla.pipeline.run_lock import last_runner

_FILE = "status.json"


def write_status(
    pipeline: Pipeline, progress: Sequence[Progress], state: str, failure: str | None = None
) -> None:
    pipeline.state.mkdir(parents=True, exist_ok=True)
    told = {
        "pipeline": pipeline.name,
        "state": state,
        "failure": failure,
        "pid": os.getpid(),
        "time": time.time(),
        "sinks": [each.as_dict() for each in progress],
    }
    path = pipeline.state / _FILE
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(told), encoding="utf-8")
    temporary.rename(path)


def read_status(pipeline: Pipeline) -> dict[str, Any] | None:
    """None: it never ran. A run whose process is gone without a word was killed."""
    told: dict[str, Any] | None
    try:
        told = json.loads((pipeline.state / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        told = None
    runner = last_runner(pipeline)
    if runner is not None and is_alive(runner) and (told is None or told["pid"] != runner):
        return {"state": "starting", "failure": None, "pid": runner, "time": time.time(), "sinks": []}
    if told is None:
        return None
    if told["state"] == "running" and not is_alive(told["pid"]):
        told["state"] = "killed"
    return told
