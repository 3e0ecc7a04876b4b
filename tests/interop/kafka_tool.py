"""One of Kafka's own command line tools, run to its end."""

from __future__ import annotations

import subprocess

from interop.builds import java_command

_TIMEOUT_S = 90


def kafka_tool(name: str, *arguments: str, stdin: str = "") -> str:
    """What it printed; it must not have failed."""
    done = subprocess.run(
        [*java_command(), name, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, (
        f"{name} {' '.join(arguments)}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )
    return done.stdout
