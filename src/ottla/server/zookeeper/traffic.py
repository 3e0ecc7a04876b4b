"""How much ZooKeeper clients ask and how long they wait, for `srvr`, `mntr` and `cons`."""

from __future__ import annotations


class Traffic:
    """Of one connection, or of all of them since the start or the last `srst`."""

    __slots__ = ("latency_us_max", "latency_us_min", "latency_us_sum", "received", "sent")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.received = 0  # requests
        self.sent = 0  # answers and events
        self.latency_us_min = 0
        self.latency_us_max = 0
        self.latency_us_sum = 0

    def answered(self, latency_us: int) -> None:
        self.sent += 1
        self.latency_us_sum += latency_us
        if latency_us > self.latency_us_max:
            self.latency_us_max = latency_us
        if latency_us < self.latency_us_min or self.sent == 1:
            self.latency_us_min = latency_us

    @property
    def latency_ms_mean(self) -> float:
        return self.latency_us_sum / self.sent / 1000 if self.sent else 0.0
