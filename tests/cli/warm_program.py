"""Runs of the program without the start of an interpreter: one process has imported everything and forks.

Each run is still a process of its own, with its own environment, folder, input and output; only the imports,
most of a short command's time, are shared. Run as a program, this file is that process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

_STREAMS = 3  # input, output, errors


class WarmProgram:
    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        atexit.register(self._end)

    def run(
        self,
        arguments: list[str],
        stdin: bytes,
        environment: Mapping[str, str],
        folder: Path,
        deadline: float,
    ) -> tuple[int, bytes, bytes]:
        """The exit code, what was printed, and what was said of errors."""
        request = json.dumps([arguments, dict(environment), str(folder)]).encode()
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(stdin)
            given.seek(0)
            socket.send_fds(self._ours, [request], [given.fileno(), out.fileno(), err.fileno()])
            self._ours.settimeout(deadline)
            try:
                code = int(self._ours.recv(16))
            except TimeoutError:
                warm_program.cache_clear()  # its answer would be taken for that of the next run
                raise
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


@cache
def warm_program() -> WarmProgram:
    return WarmProgram()


def _serve(peer: socket.socket) -> None:
    import ottla

    for module in pkgutil.walk_packages(ottla.__path__, "ottla."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.freeze()  # else each run, in the end, goes through all that is here, and copies it: most of its time
    while True:
        request, streams, _, _ = socket.recv_fds(peer, 1 << 20, _STREAMS)
        if not request:
            return
        child = os.fork()
        if child == 0:
            peer.close()
            _run(*json.loads(request), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        peer.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(arguments: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    from ottla.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.exit(main(arguments))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
