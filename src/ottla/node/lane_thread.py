"""The thread of a `DiskLane`."""

from __future__ import annotations

import os
import threading

from ottla.log.disk_lane import DiskLane


class LaneThread:
    def __init__(self, name: str, bell_fd: int) -> None:
        # A bell of its own: who waits there may have closed its end before the last write of an abandoned
        # lane is done, and the number could be another file's then.
        self._bell_fd = os.dup(bell_fd)
        self.lane = DiskLane(self._bell_fd)
        self._thread = threading.Thread(target=self._serve, name=f"ottla-{name}", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self.lane.serve()
        os.close(self._bell_fd)

    def stop(self) -> None:
        """Waits for what is under way."""
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """The thread ends after what it does now; nobody waits for that."""
        self.lane.close()
