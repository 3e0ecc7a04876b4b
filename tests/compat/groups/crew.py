"""The members of one group, each in its process, and what they have told."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from compat.waiting import eventually

_MEMBER = Path(__file__).parent / "member.py"
PYTHON_CLIENTS = {
    client: [sys.executable, str(_MEMBER), client] for client in ("confluent", "kafka-python", "aiokafka")
}
WITHIN_SECONDS = 60.0  # generous: a dozen processes may share two cores


class Member:
    def __init__(self, command: list[str], files: Path) -> None:
        self._output = files.with_suffix(".out")
        self._errors = files.with_suffix(".err")
        with self._output.open("wb") as output, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=output, stderr=errors)
        self._position = 0
        self._rest = b""
        self.assigned: list[int] = []
        self.read: list[tuple[int, int, str]] = []  # partition, offset, value
        self.alive = True

    def look(self) -> None:
        """Takes in what it has told since."""
        with self._output.open("rb") as output:
            output.seek(self._position)
            data = output.read()
        self._position += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            told = json.loads(line)
            if "assigned" in told:
                self.assigned = told["assigned"]
            self.read += [tuple(each) for each in told.get("read", ())]

    def leave(self) -> None:
        self.alive = False
        self.process.terminate()
        assert self.process.wait(WITHIN_SECONDS) == 0, self.errors()

    def kill(self) -> None:
        self.alive = False
        self.process.kill()
        self.process.wait()

    def errors(self) -> str:
        return self._errors.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()


class Crew:
    def __init__(
        self,
        client: str,
        strategy: str,
        bootstrap: str,
        group: str,
        topic: str,
        commands: Mapping[str, list[str]] = PYTHON_CLIENTS,
    ) -> None:
        self._client = client  # which of the commands members are, unless told otherwise
        self._commands = commands
        self._arguments = [bootstrap, group, topic]
        self._strategy = strategy
        self.members: list[Member] = []
        self._home = tempfile.TemporaryDirectory()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for member in self.members:
            member.close()
        self._home.cleanup()

    def add(self, count: int = 1, client: str | None = None, strategy: str | None = None) -> list[Member]:
        command = [*self._commands[client or self._client], *self._arguments, strategy or self._strategy]
        for _ in range(count):
            self.members.append(Member(command, Path(self._home.name, str(len(self.members)))))
        return self.members[-count:]

    @property
    def alive(self) -> list[Member]:
        return [member for member in self.members if member.alive]

    def shares(self) -> list[int]:
        """How many partitions each member has, the most first."""
        self._look()
        return sorted((len(member.assigned) for member in self.alive), reverse=True)

    def wait_for_shares(self, *shares: int) -> None:
        partitions = list(range(sum(shares)))

        def is_shared() -> bool:
            owned = sorted(each for member in self.alive for each in member.assigned)
            return self.shares() == list(shares) and owned == partitions

        assert eventually(is_shared, WITHIN_SECONDS), (self.shares(), self._troubles())

    def wait_for(self, values: set[str]) -> None:
        """Until every one of them was read by somebody."""

        def is_read() -> bool:
            self._look()
            return values <= self.values()

        assert eventually(is_read, WITHIN_SECONDS), (len(values - self.values()), self._troubles())

    def values(self) -> set[str]:
        return {value for member in self.members for _, _, value in member.read}

    def _look(self) -> None:
        for member in self.members:
            member.look()

    def _troubles(self) -> list[str]:
        return [member.errors() for member in self.members]
