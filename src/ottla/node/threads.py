"""The threads of a broker beside its owner's, by what they wait for: no one's disk holds up another's."""

from __future__ import annotations

from collections.abc import Callable

from ottla.node.lane_thread import LaneThread
from ottla.node.workers import Workers

_COLD_READERS = 2


class Threads:
    def __init__(self, post: Callable[[Callable[[], None]], None], bell_fd: int) -> None:
        self.syncer = Workers("sync", 1, post)  # of the logs
        self.sync_lane = LaneThread("sync-lane", bell_fd)  # for their usual rounds
        self.coordination_syncer = Workers("coordination", 1, post)  # of the tree of znodes
        self.coordination_lane = LaneThread("coordination-lane", bell_fd)  # for its usual rounds
        self.reader = Workers("read", _COLD_READERS, post)  # of what is not in the page cache
        self.scrubber = Workers("scrub", 1, post)
        self.file_maker = Workers("files", 1, post)  # of partitions that come and go
        self._all = (
            self.syncer,
            self.sync_lane,
            self.coordination_syncer,
            self.coordination_lane,
            self.reader,
            self.scrubber,
            self.file_maker,
        )

    def stop(self) -> None:
        """Waits for what is under way."""
        for workers in self._all:
            workers.stop()

    def abandon(self) -> None:
        for workers in self._all:
            workers.abandon()
