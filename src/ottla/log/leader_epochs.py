"""Which leader epoch wrote which offsets: `leader-epoch-checkpoint`, and the questions replicas and
consumers ask it.

Entries (epoch, start offset) rise in both. The log decides when the file is written: before or together
with the records of the epoch, so that no synced record is without its epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from ottla.log.checkpoints import decode_lines, encode_lines
from ottla.model.errors import CorruptData
from ottla.model.values import NamedTuple

FILE_NAME = "leader-epoch-checkpoint"
UNKNOWN = -1


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    __slots__ = ("_entries", "latest")

    def __init__(self, entries: list[EpochStart] | None = None) -> None:
        self._entries: list[EpochStart] = []
        self.latest = UNKNOWN  # epoch of the last entry
        for entry in entries or ():
            self.assign(entry.epoch, entry.start_offset)

    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """`epoch` begins at `start_offset`. Entries that contradict it give way. False: nothing changed."""
        assert min(epoch, start_offset) >= 0, (epoch, start_offset)
        last = self._entries[-1] if self._entries else None
        if last is not None and last.epoch == epoch and start_offset >= last.start_offset:
            return False
        while self._entries and (
            self._entries[-1].epoch >= epoch or self._entries[-1].start_offset >= start_offset
        ):
            self._entries.pop()
        self._entries.append(EpochStart(epoch, start_offset))
        self.latest = epoch
        return True

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch up to `epoch` and the offset at which it ended; (-1, -1) when unknown."""
        if not self._entries or epoch == UNKNOWN or epoch > self.latest:
            return UNKNOWN, UNKNOWN
        if epoch == self.latest:
            return epoch, log_end_offset
        next_at = bisect_right(self._entries, epoch, key=_epoch_of)
        next_start = self._entries[next_at].start_offset
        if next_at == 0:
            return epoch, next_start  # its records are gone; a follower starts at our first
        return self._entries[next_at - 1].epoch, next_start

    def epoch_at(self, offset: int) -> int:
        """The epoch that wrote `offset`; -1 when unknown."""
        at = bisect_right(self._entries, offset, key=_start_of) - 1
        return self._entries[at].epoch if at >= 0 else UNKNOWN

    def truncate_end(self, end_offset: int) -> bool:
        """Forget epochs that begin at or behind the log's new end."""
        before = len(self._entries)
        while self._entries and self._entries[-1].start_offset >= end_offset:
            self._entries.pop()
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN
        return len(self._entries) != before

    def truncate_start(self, start_offset: int) -> bool:
        """The log begins at `start_offset` now: of the epochs before it only the last one goes on, from
        there.
        """
        at = bisect_right(self._entries, start_offset, key=_start_of) - 1
        if at < 0 or (at == 0 and self._entries[0].start_offset == start_offset):
            return False
        self._entries[: at + 1] = [EpochStart(self._entries[at].epoch, start_offset)]
        return True

    def reset(self, entries: Iterable[EpochStart] = ()) -> None:
        """Start over with these."""
        self._entries = list(entries)
        self.latest = self._entries[-1].epoch if self._entries else UNKNOWN

    def encode(self) -> bytes:
        return encode_lines(f"{epoch} {start}" for epoch, start in self._entries)


def decode_leader_epochs(data: bytes) -> LeaderEpochs:
    return LeaderEpochs(decode_epoch_starts(data))


def decode_epoch_starts(data: bytes) -> list[EpochStart]:
    """The entries as they are in the file, in order or not."""
    entries = []
    for fields in decode_lines(data):
        if len(fields) != 2:
            raise CorruptData(f"an epoch and an offset are expected, not {fields}")
        entries.append(EpochStart(int(fields[0]), int(fields[1])))
    return entries


def _epoch_of(entry: EpochStart) -> int:
    return entry.epoch


def _start_of(entry: EpochStart) -> int:
    return entry.start_offset
