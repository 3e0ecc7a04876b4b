"""The one face that the tests see of a long-lived consumer with assigned partitions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from compat.record import Delivered

EARLIEST = "earliest"
LATEST = "latest"
ERROR = "error"


@dataclass(frozen=True, slots=True)
class Settings:
    # What happens at an offset that the partition does not hold: EARLIEST, LATEST or ERROR.
    reset: str = EARLIEST
    read_committed: bool = False
    wait_ms: int = 500
    min_bytes: int = 1
    partition_bytes: int = 1024 * 1024


class OutOfRange(Exception):
    """The consumer reported that its offset is not in the partition."""


class AssignedConsumer(Protocol):
    def assign(self, starts: Mapping[int, int | str]) -> None:
        """Read these partitions, from an offset or from EARLIEST or LATEST; others no more."""

    def poll(self, timeout_s: float) -> list[Delivered]:
        """What has arrived; waits up to the timeout for the first record."""

    def pause(self, partitions: Iterable[int]) -> None: ...

    def resume(self, partitions: Iterable[int]) -> None: ...

    def watermarks(self, partition: int) -> tuple[int, int]: ...

    def offset_at(self, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after the time; None when there is none."""

    def close(self) -> None: ...


def read(consumer: AssignedConsumer, count: int, within_s: float = 20.0) -> list[Delivered]:
    """Poll until `count` records have come; fewer when time is up."""
    records: list[Delivered] = []
    deadline = time.monotonic() + within_s
    while len(records) < count and time.monotonic() < deadline:
        records += consumer.poll(0.5)
    return records
