# mypy: disable-error-code="no-any-return"
"""Receiving and sending on sockets that never block. Nothing to receive and no room to send are no errors
here: in most turns some socket has one of them, and an exception costs more than the call.

Compiled these are the system's own calls, made without giving up the interpreter: they never wait.
"""

from __future__ import annotations

import os
import socket

from ottla.model.limits import KIB, RECEIVE_BYTES

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import Py_buffer, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
    from cython.cimports.cpython.bytes import PyBytes_AS_STRING
    from cython.cimports.cpython.exc import PyErr_SetFromErrno
    from cython.cimports.ottla.server import _system_calls as system

_RECEIVE_BYTES_MAX = (
    3 * RECEIVE_BYTES
)  # as much as usually is in a socket, so that no frame comes in two parts
_COPIED_BYTES_MAX = 8 * KIB  # above that it is cheaper to receive into new memory


def receive_now(sock: socket.socket, fd: int) -> bytes | None:
    """What has arrived, at most RECEIVE_BYTES, compiled some more where small frames follow each other;
    nothing when the peer sends no more; None: there is nothing yet.
    """
    if cython.compiled:
        return system.receive(fd, RECEIVE_BYTES, _RECEIVE_BYTES_MAX, _COPIED_BYTES_MAX)
    try:
        return sock.recv(RECEIVE_BYTES)
    except (BlockingIOError, InterruptedError):
        return None


def receive_into_now(sock: socket.socket, fd: int, room: memoryview) -> int:
    """How many bytes came into `room`; 0: the peer sends no more; -1: there is nothing yet."""
    if cython.compiled:
        buffer = cython.declare(Py_buffer)
        PyObject_GetBuffer(room, cython.address(buffer), PyBUF_WRITABLE)
        count = system.recv(fd, buffer.buf, buffer.len, 0)
        PyBuffer_Release(cython.address(buffer))
        if count < 0:
            _must_wait()
        return count
    try:
        return sock.recv_into(room)
    except (BlockingIOError, InterruptedError):
        return -1


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


def send_file_now(fd: int, file_fd: int, position: int, size: int) -> int:
    """How many bytes of the file the system took; 0: the file ends before; -1: it has no room."""
    if cython.compiled and system.HAS_SENDFILE:
        with cython.nogil:  # the disk may be asked after all
            count = system.send_file(fd, file_fd, position, size)
        if count < 0:
            _must_wait()
        return count
    try:
        return os.sendfile(fd, file_fd, position, size)
    except (BlockingIOError, InterruptedError):
        return -1


def _must_wait() -> bool:
    """After a call that failed: OSError, unless it would have had to wait."""
    if system.errno in (system.EAGAIN, system.EWOULDBLOCK, system.EINTR):
        return True
    PyErr_SetFromErrno(OSError)
    return False
