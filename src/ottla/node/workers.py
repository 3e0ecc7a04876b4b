"""Threads for what blocks: syncs and cold reads. They hand their results back to the owner and own no state.

The interpreter is free while they are in the kernel, so they do not slow the owner down; nothing that burns
Python time may be given to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]


class Workers:
    def __init__(self, name: str, count: int, post: Callable[[Callable[[], None]], None]) -> None:
        self._queue: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._post = post  # runs a callable on the owner's thread
        self._threads = [
            threading.Thread(target=self._run, name=f"ottla-{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, work: Work, done: Done) -> None:
        """Runs `work` in a thread, then `done` with its error, or None, on the owner's."""
        self._queue.put((work, done))

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            work, done = task
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # whatever it is, the owner must hear of it
                error = raised
            self._hand_back(done, error)

    def _hand_back(self, done: Done, error: BaseException | None) -> None:
        self._post(lambda: done(error))

    def stop(self) -> None:
        """Waits for what is under way."""
        self.abandon()
        for thread in self._threads:
            thread.join()

    def abandon(self) -> None:
        """The threads end after what they do now; nobody waits for that."""
        for _ in self._threads:
            self._queue.put(None)
