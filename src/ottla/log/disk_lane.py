# mypy: disable-error-code="attr-defined,no-any-return"
"""What has to wait for the disk, one piece at a time, in a thread for nothing else; compiled, it never needs
the interpreter.

The owner gives some work (`give`) and looks in every turn whether it `is_done`; a byte to `bell_fd` ends its
wait. The lane makes no thread: whoever has it runs `serve` in one.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.log.files import DirectAppend

try:
    import cython
except ModuleNotFoundError:  # uncompiled, and Cython is not there: its names are only decoration then
    from ottla.model import cython_shim as cython

if cython.compiled:
    from cython.cimports.ottla.log import _write_calls as system


class DiskWork:
    """Something made ready by the owner, which leaves it alone until it is done."""

    def perform(self) -> int:
        """0, or the number of an error. Each kind of work has its own; compiled, it touches no object."""
        return -1


class DiskLane:
    def __init__(self, bell_fd: int) -> None:
        self.is_done = False  # what was given is done, or has failed
        self._error = 0
        self._work: DiskWork | DirectAppend | None = None
        self._bell_fd = bell_fd
        self._asked_fd, self._asking_fd = os.pipe()

    def give(self, work: DiskWork | DirectAppend) -> None:
        """`work` is ready; it belongs to the lane until `take`."""
        self._work = work
        self.is_done = False
        os.write(self._asking_fd, b"\0")

    def take(self) -> int:
        """After `is_done`: 0, or the number of the error."""
        self.is_done = False
        self._work = None
        return self._error

    def serve(self) -> None:
        """Until `close`. In a thread of its own."""
        with cython.nogil:
            while self._is_asked():
                self._error = self._work.perform()  # type: ignore[union-attr]
                self._tell()
        os.close(self._asked_fd)

    def _is_asked(self) -> bool:
        """Waits for the owner; False: there will be nothing more."""
        if cython.compiled:
            while True:
                count = system.read(self._asked_fd, self._byte, 1)
                if count >= 0 or system.errno != system.EINTR:
                    return count > 0
        else:
            return bool(os.read(self._asked_fd, 1))

    def _tell(self) -> None:
        if cython.compiled:
            system.all_is_written()
            self.is_done = True
            system.write(self._bell_fd, self._byte, 1)  # full: the owner is awake anyway
        else:
            self.is_done = True
            with contextlib.suppress(OSError):
                os.write(self._bell_fd, b"\0")

    def close(self) -> None:
        """`serve` ends after what it does now."""
        fd, self._asking_fd = self._asking_fd, -1
        if fd >= 0:
            os.close(fd)
