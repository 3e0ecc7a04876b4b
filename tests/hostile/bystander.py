"""A decent client at work beside an attack: what it wrote is read back, and each round trip is timed."""

from __future__ import annotations

import statistics
import threading
import time
from types import TracebackType

from hostile.ground import Ground
from hostile.peer import batch_of


class Bystander:
    """Produces and fetches in a thread of its own for as long as the `with` block lasts."""

    def __init__(self, ground: Ground, topic: str) -> None:
        self._ground = ground
        self._topic = topic
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.round_trips_ms: list[float] = []

    def _run(self) -> None:
        try:
            with self._ground.peer(timeout_seconds=30) as peer:
                while not self._stop.is_set():
                    value = b"%020d" % len(self.round_trips_ms)
                    began = time.perf_counter()
                    error, offset = peer.produce(self._topic, batch_of([value]), acks=-1)
                    assert error == 0
                    assert value in peer.fetch(self._topic, offset)
                    self.round_trips_ms.append((time.perf_counter() - began) * 1000)
                    time.sleep(0.002)
        except BaseException as error:  # told to the test when the block ends
            self._error = error

    def __enter__(self) -> Bystander:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(40)
        if error is None:
            assert self._error is None, self._error
            assert not self._thread.is_alive()

    @property
    def median_ms(self) -> float:
        return statistics.median(self.round_trips_ms)


def median_in_peace_ms(ground: Ground, topic: str, seconds: float = 0.5) -> float:
    with Bystander(ground, topic) as bystander:
        time.sleep(seconds)
    return bystander.median_ms
