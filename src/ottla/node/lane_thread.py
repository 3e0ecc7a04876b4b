"""The thread of a `WriteLane`."""

from __future__ import annotations

import threading

from ottla.log.write_lane import WriteLane


class LaneThread:
    def __init__(self, name: str, bell_fd: int) -> None:
        self.lane = WriteLane(bell_fd)
        self._thread = threading.Thread(target=self.lane.serve, name=f"ottla-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Waits for what is under way."""
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """The thread ends after what it does now; nobody waits for that."""
        self.lane.close()
