"""A checker of what concurrent clients saw: ZooKeeper's promises, on recorded histories.

Clients write values that nobody else writes, to a few paths, and record each call with the time it began and
ended. `problems` then says what no correct service could have answered:

- writes are linearizable: their transactions are in an order that fits the times and the versions;
- a client's view never goes back, across all paths, and holds its own writes;
- an event comes before the new data, to whoever set a watch;
- reads behind a sync (and all reads, where the service promises it) are linearizable too.

A write whose answer never came may have happened or not; if its value is ever read, it has.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

ABSENT = 0


@dataclass(slots=True)
class Call:
    client: int
    kind: Literal["write", "read", "sync", "event", "connect"]  # watches end with a connection
    path: str
    began: float
    ended: float | None  # None: the answer never came (of a write; leave other calls out then)
    value: bytes | None = None  # what was written or read
    zxid: int = ABSENT  # of the write; mzxid of what was read; of the event
    version: int = -1  # behind the write; of what was read
    expected_version: int = -1  # that the write was conditional on
    watch: bool = False  # the read left a watch


def problems(calls: Sequence[Call], *, linearizable_reads: bool = False) -> list[str]:
    return list(_Checker(calls, linearizable_reads).check())


class _Checker:
    def __init__(self, calls: Sequence[Call], linearizable_reads: bool) -> None:
        self.calls = sorted(calls, key=lambda call: call.began)
        self.linearizable_reads = linearizable_reads
        self.reads = [call for call in self.calls if call.kind == "read"]
        self.lost = [call for call in self.calls if call.kind == "write" and call.ended is None]
        self.writes = [call for call in self.calls if call.kind == "write" and call.ended is not None]
        self.writes += self._lost_but_seen()
        self.by_path: dict[str, list[Call]] = defaultdict(list)
        for write in sorted(self.writes, key=lambda write: write.zxid):
            self.by_path[write.path].append(write)

    def _lost_but_seen(self) -> Iterator[Call]:
        seen = {(read.path, read.value): read for read in self.reads}
        for write in self.lost:
            read = seen.get((write.path, write.value))
            if read is not None:
                yield Call(
                    write.client, "write", write.path, write.began, None, write.value, read.zxid, read.version
                )

    def check(self) -> Iterator[str]:
        yield from self._writes_fit_the_times()
        yield from self._writes_fit_the_versions()
        yield from self._reads_show_what_was_written()
        by_client: dict[int, list[Call]] = defaultdict(list)
        for call in self.calls:
            by_client[call.client].append(call)
        for client in by_client.values():
            yield from self._no_client_goes_back(client)
            yield from self._events_come_first(client)
        yield from self._reads_are_fresh(by_client.values())

    def _writes_fit_the_times(self) -> Iterator[str]:
        finished = sorted((write for write in self.writes if write.ended is not None), key=_ended)
        newest, index = ABSENT, 0
        for write in sorted(self.writes, key=lambda write: write.began):
            while index < len(finished) and _ended(finished[index]) < write.began:
                newest = max(newest, finished[index].zxid)
                index += 1
            if write.zxid <= newest:
                yield f"{write} began after transaction {newest} was answered, and came before it"

    def _writes_fit_the_versions(self) -> Iterator[str]:
        for path, writes in self.by_path.items():
            unseen = sum(write.path == path for write in self.lost)
            unseen -= sum(write.ended is None for write in writes)
            for before, write in itertools.pairwise(writes):
                if before.zxid == write.zxid:
                    yield f"two writes of {path} have transaction {write.zxid}"
                skipped = write.version - before.version - 1
                unseen -= max(0, skipped)
                if skipped < 0 or unseen < 0:
                    yield f"{write} follows {before}: the versions do not"
            for write in writes:
                if write.expected_version not in (-1, write.version - 1):
                    yield f"{write} was carried out on another version than it asked for"

    def _reads_show_what_was_written(self) -> Iterator[str]:
        written = {(write.path, write.zxid): write for write in self.writes}
        for read in self.reads:
            if read.zxid == ABSENT:
                continue
            write = written.get((read.path, read.zxid))
            if write is None or (write.value, write.version) != (read.value, read.version):
                yield f"{read} shows what nobody wrote"
            elif write.began > _ended(read):
                yield f"{read} shows what was written later, by {write}"

    def _no_client_goes_back(self, calls: list[Call]) -> Iterator[str]:
        seen = ABSENT
        for call in calls:
            if call.ended is None:
                continue
            if call.kind == "read" and call.zxid < self._newest(call.path, up_to_zxid=seen):
                yield f"{call} is older than what the client had seen (transaction {seen})"
            if call.kind == "write" and call.zxid <= seen:
                yield f"{call} is not newer than what the client had seen (transaction {seen})"
            seen = max(seen, call.zxid)

    def _newest(self, path: str, up_to_zxid: int) -> int:
        return max((write.zxid for write in self.by_path[path] if write.zxid <= up_to_zxid), default=ABSENT)

    def _events_come_first(self, calls: list[Call]) -> Iterator[str]:
        armed: dict[str, int] = {}  # what the client had read when it left its watch
        for call in sorted((call for call in calls if call.ended is not None), key=_ended):
            if call.kind == "connect":
                armed.clear()
            elif call.kind == "event":
                armed.pop(call.path, None)
            elif call.kind == "read":
                if call.zxid > armed.get(call.path, call.zxid):
                    yield f"{call} shows a change whose event had not come"
                if call.watch:
                    armed[call.path] = call.zxid

    def _reads_are_fresh(self, clients: Iterable[list[Call]]) -> Iterator[str]:
        # What was known of each path when: writes that had been answered, and linearizable reads.
        known = [call for call in self.writes if call.ended is not None]
        if self.linearizable_reads:
            known += self.reads
        for calls in clients:
            synced = None
            for call in calls:
                if call.kind == "sync":
                    synced = call.began
                if call.kind != "read" or (synced is None and not self.linearizable_reads):
                    continue
                since = call.began if self.linearizable_reads else synced
                assert since is not None
                older = (one.zxid for one in known if one.path == call.path and _ended(one) < since)
                newest = max(older, default=ABSENT)
                if call.zxid < newest:
                    yield f"{call} does not show transaction {newest}, which was answered before"


def _ended(call: Call) -> float:
    assert call.ended is not None
    return call.ended
