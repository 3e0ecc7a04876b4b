# mypy: disable-error-code="no-any-return"
"""Receiving and sending on sockets that never block. Nothing to receive and no room to send are no errors
here: in most turns some socket has one of them, and an exception costs more than the call.

Compiled these are the system's own calls, made without giving up the interpreter: they never wait.
"""

from __future__ import annotations

import socket

from ottla.model.limits import RECEIVE_BYTES

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
    from cython.cimports.cpython.exc import PyErr_SetFromErrno
    from cython.cimports.libc.stdlib import malloc
    from cython.cimports.ottla.server import _system_calls as system

    _room = cython.cast(cython.p_char, malloc(RECEIVE_BYTES))  # nobody else runs while it is in use


def receive_now(sock: socket.socket, fd: int) -> bytes | None:
    """What has arrived, at most RECEIVE_BYTES; nothing when the peer sends no more; None: there is nothing
    yet.
    """
    if cython.compiled:
        count = system.recv(fd, _room, RECEIVE_BYTES, 0)
        if count >= 0:
            return PyBytes_FromStringAndSize(_room, count)
        _must_wait()
        return None
    try:
        return sock.recv(RECEIVE_BYTES)
    except (BlockingIOError, InterruptedError):
        return None


def send_now(sock: socket.socket, fd: int, data: bytes | bytearray | memoryview, flags: int) -> int:
    """How many bytes of `data` the system took; 0: it has no room."""
    if cython.compiled and type(data) is bytes:
        count = system.send(fd, PyBytes_AS_STRING(data), len(data), flags)
        if count < 0:
            _must_wait()
            count = 0
        return count
    try:
        return sock.send(data, flags)
    except (BlockingIOError, InterruptedError):
        return 0


def _must_wait() -> bool:
    """After a call that failed: OSError, unless it would have had to wait."""
    if system.errno in (system.EAGAIN, system.EWOULDBLOCK, system.EINTR):
        return True
    PyErr_SetFromErrno(OSError)
    return False
