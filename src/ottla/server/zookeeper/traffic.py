"""How much ZooKeeper clients ask and how long they wait, for `srvr` and `mntr`."""

from __future__ import annotations

from ottla.model.clock import Clock, monotonic_us_of


class Traffic:
    """Of all connections since the start or the last `srst`."""

    __slots__ = ("_clock", "latency_us_max", "latency_us_min", "latency_us_sum", "received", "sent")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        self.received = 0  # requests
        self.sent = 0  # their answers
        self.latency_us_min = 0
        self.latency_us_max = 0
        self.latency_us_sum = 0

    def answered(self, arrived_us: int) -> None:
        latency_us = monotonic_us_of(self._clock) - arrived_us
        self.sent += 1
        self.latency_us_sum += latency_us
        if latency_us > self.latency_us_max:
            self.latency_us_max = latency_us
        elif latency_us < self.latency_us_min or self.sent == 1:
            self.latency_us_min = latency_us

    @property
    def latency_ms_mean(self) -> float:
        return self.latency_us_sum / self.sent / 1000 if self.sent else 0.0
