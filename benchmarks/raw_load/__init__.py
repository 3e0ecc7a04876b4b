"""Runs `raw_load`, a client in C that sends one prepared request over many connections."""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "raw_load.c"
KAFKA_ID_AT, ZOOKEEPER_ID_AT, NO_ID = 8, 4, 0  # where a request's correlation id is

UNDISTURBED = "undisturbed"  # the share of the time in which the host of a virtual machine left it its cores
_UNDISTURBED_MIN = 0.25
_PAUSES_SECONDS = (0, 1, 3, 5)  # before each attempt: it comes in bursts

Figures = dict[str, float]


class LoadFailed(Exception):
    """A client in C gave up; the message is what it said."""


@dataclass(frozen=True)
class Shape:
    """How much at once."""

    connections: int
    in_flight: int = 1  # requests under way on each connection
    rate: float = 0  # requests per second over all connections; 0: as fast as they are answered


@dataclass(frozen=True)
class Steps:
    """A number of eight bytes that grows from request to request, and how many requests there are."""

    number_at: int
    step: int
    count: int


class Running:
    """One run of a client in C, under way."""

    def __init__(self, command: list[str], answer_file: Path | None = None) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._answer_file = answer_file

    def result(self) -> Figures:
        output, errors = self.process.communicate()
        if self.process.returncode != 0:
            raise LoadFailed(errors.strip() or f"exit code {self.process.returncode}")
        figures: Figures = json.loads(output)
        return figures

    def answer(self) -> bytes:
        """The first one, whole, when the run is over."""
        assert self._answer_file is not None
        return self._answer_file.read_bytes()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


class RawLoad:
    """The client runs on the cores of its caller."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = compiled(SOURCE, folder)
        self._numbers = itertools.count()

    def start(
        self,
        address: str,
        request: bytes,
        shape: Shape,
        seconds: float,
        *,
        warm_up_seconds: float = 0.5,
        id_at: int = KAFKA_ID_AT,
        opening: bytes = b"",
        steps: Steps | None = None,
    ) -> Running:
        file = self._folder / f"request-{next(self._numbers)}"
        file.write_bytes(request)
        host, _, port = address.rpartition(":")
        command: list[Any] = [self._program, host, port, file, shape.connections, shape.in_flight]
        command += [seconds, warm_up_seconds, shape.rate, id_at]
        if opening:
            opening_file = file.with_suffix(".opening")
            opening_file.write_bytes(opening)
            command.append(opening_file)
        if steps is not None:
            command += [] if opening else ["-"]
            command += [steps.number_at, steps.step, steps.count]
        return Running(list(map(str, command)), file.with_suffix(".answer"))


def compiled(source: Path, folder: Path, *arguments: str) -> Path:
    program = folder / source.stem
    subprocess.run(["cc", "-O2", "-Wall", "-o", program, source, *arguments], check=True)
    return program


def least_disturbed(measure: Callable[[], Figures]) -> Figures:
    """Measures again, some times, while the host takes most of the time away: the least disturbed figures."""
    best: Figures = {}
    for pause_seconds in _PAUSES_SECONDS:
        time.sleep(pause_seconds)
        figures = measure()
        best = max(best, figures, key=lambda each: each.get(UNDISTURBED, 1) if each else -1)
        if best.get(UNDISTURBED, 1) >= _UNDISTURBED_MIN:
            break
    return best


class Busy:
    """How much of a core the clients that ended meanwhile had: near 1, they were the limit."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._used = self._children_seconds()

    def share(self) -> float:
        return (self._children_seconds() - self._used) / (time.perf_counter() - self._began)

    @staticmethod
    def _children_seconds() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
