"""Who listens on a port of this machine, from /proc; nobody knows elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_LISTENING = "0A"  # TCP_LISTEN in /proc/net/tcp
_COMMAND_CHARACTERS_MAX = 80


def port_owner(port: int) -> str | None:
    """`python -m ottla up (pid 123)`; without /proc, or for another user's process, None."""
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    if not sockets:
        return None
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = {os.readlink(descriptor) for descriptor in (process / "fd").iterdir()}
            if held & sockets:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                return f"{command.strip()[:_COMMAND_CHARACTERS_MAX]} (pid {process.name})"
        except OSError:  # ended meanwhile, or not ours to look at
            continue
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]
