"""The program on a terminal (a pty), as a person sees it: keys go in, what is on the screen comes out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from types import TracebackType

from cli.program import DEADLINE_SECONDS, Program

_CONTROL = re.compile(r"\x1b\[(\?7[hl]|[0-9;]*[AJKm])|([\r\n])")


def _own_the_terminal() -> None:
    """As a login does. Ctrl-C is listened to; tests that run in the background have it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    def __init__(self, program: Program, *arguments: str, **environment: str) -> None:
        self._screen, theirs = pty.openpty()
        environment = {**program.environment, "TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            program.command(*arguments),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            cwd=program.home,
            start_new_session=True,
            preexec_fn=_own_the_terminal,
        )
        os.close(theirs)
        self.text = ""  # everything that was shown

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._screen)

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def interrupt(self) -> None:
        self.type("\x03")  # Ctrl-C

    def wait_for(self, text: str, seconds: float = DEADLINE_SECONDS) -> str:
        """Until `text` is on the screen; everything that was shown."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.text!r}"
            if not self._read(1.0) and self.process.poll() is not None:
                assert text in self.text, f"{text!r} did not come: {self.text!r}"
        return self.text

    def look(self) -> None:
        """What has come meanwhile is read, so that the program can go on drawing."""
        self._read(0.1)

    def end(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Until the program has ended; its exit code."""
        while self._read(seconds):
            pass
        return self.process.wait(seconds)

    def screen(self) -> list[str]:
        """The lines that are left after what was drawn over and wiped away."""
        lines, row, column = [""], 0, 0
        end = 0
        for found in _CONTROL.finditer(self.text):
            text, end = self.text[end : found.start()], found.end()
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
            match found[2] or found[1][-1]:
                case "\r":
                    column = 0
                case "\n":
                    row, column = row + 1, 0
                    lines += [""] * (row + 1 - len(lines))
                case "A":
                    row = max(row - int(found[1][:-1] or 1), 0)
                case "J":
                    lines[row:] = [lines[row][:column]]
                case "K":
                    lines[row] = lines[row][:column]
        return [line.rstrip() for line in [*lines[:-1], lines[-1] + self.text[end:]] if line.strip()]

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._screen, 65_536)
        except OSError:  # EIO: the other side is closed
            return False
        self.text += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
