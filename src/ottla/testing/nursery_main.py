"""The process that has imported everything a broker needs, and forks one whenever it is asked to.

Single-threaded, so that a fork is whole. A request comes with three descriptors: the broker's output, its
line to the test, and the pipe on which the test learns the process id first and the exit code at last.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from functools import partial
from importlib import import_module

from ottla.testing.nursery import SIZE

_DESCRIPTORS = 3
_WARM = ("ottla.cli.up", "ottla.node.broker", "ottla.testing.service_main")
_USUAL = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 22)  # APIs that nearly every test uses


def serve(peer: socket.socket) -> None:
    """Until the test's process lets go of the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the test's; the end of the line is ours
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for name in _WARM:
        import_module(name)
    chores = _compile_codecs()
    children: dict[int, int] = {}  # by process id: the pipe for its exit code
    while True:
        # Codecs are compiled while nobody waits, one at a time.
        idle = next(chores, None) is None
        ready, _, _ = select.select([peer.fileno(), woken], [], [], None if idle else 0)
        if woken in ready:
            _drain(woken)
            _reap(children)
        if peer.fileno() in ready and not _answer(peer, children):
            return


def _compile_codecs() -> Iterator[bool]:
    from ottla.protocol.apis import APIS
    from ottla.protocol.codec import reader, writer

    for key in _USUAL:
        api = APIS[key]
        reader(api.request, api.versions[1])
        writer(api.response, api.versions[1])
        yield True
    gc.collect()
    gc.freeze()  # what is here is shared with the children: their collections must not touch it
    yield True


def _answer(peer: socket.socket, children: dict[int, int]) -> bool:
    head, descriptors, _, _ = socket.recv_fds(peer, SIZE.size, _DESCRIPTORS)
    if not head:
        return False
    request = b""
    (size,) = SIZE.unpack(head)
    while len(request) < size:
        request += peer.recv(size - len(request))
    output, control, status = descriptors
    pid = os.fork()
    if pid == 0:
        peer.close()
        for pipe in children.values():
            os.close(pipe)
        os.close(status)
        _become(json.loads(request), output, control)
    os.close(output)
    os.close(control)
    os.write(status, f"{pid}\n".encode())
    children[pid] = status
    return True


def _become(request: dict[str, object], output: int, control: int) -> None:
    """The child: from here on it is the program, and never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        os.chdir(str(request["folder"]))
        os.environ.clear()
        os.environ.update(request["environment"])  # type: ignore[call-overload]
        from ottla.testing.service_main import run

        code = run(control, request["arguments"])  # type: ignore[arg-type]
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _reap(children: dict[int, int]) -> None:
    for pid in list(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            pipe = children.pop(pid)
            with contextlib.suppress(BrokenPipeError):  # nobody asks any more
                os.write(pipe, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(pipe)


def _drain(pipe: int) -> None:
    for _ in iter(partial(_read_some, pipe), b""):
        pass


def _read_some(pipe: int) -> bytes:
    try:
        return os.read(pipe, 512)
    except BlockingIOError:
        return b""


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as line:
        serve(line)
