"""A real broker in a process of its own, for as long as a `with` block lasts.

    with BrokerProcess() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It listens on loopback, on ports that the system chose, and keeps its data in a temporary directory unless it
is given one. `kill` ends it as a crash would; `start` brings it back on the same data and ports.
"""

from __future__ import annotations

from pathlib import Path

from ottla.testing.fault_injection import FaultControl, FaultInjection
from ottla.testing.service_process import BrokerDied, ServiceProcess

__all__ = ["BrokerDied", "BrokerProcess"]


class BrokerProcess(ServiceProcess, FaultInjection):
    @property
    def fault_control(self) -> FaultControl:
        if self._control is None:
            raise BrokerDied("the broker is not running; start it before it is told of faults")
        return self._control

    @property
    def bootstrap(self) -> str:
        """host:port of the first listener."""
        return next(iter(self._listeners.values()))

    def address(self, listener: str) -> str:
        """host:port of a listener by its name."""
        return self._listeners[listener]

    @property
    def http(self) -> str | None:
        """host:port of /metrics, /healthz and /readyz."""
        http: str | None = self.announced["http"]
        return http

    @property
    def _listeners(self) -> dict[str, str]:
        listeners: dict[str, str] = self.announced.get("listeners", {})
        return listeners

    @property
    def ready_file(self) -> Path:
        return self.data_dir / "coordination" / "broker.json"

    def arguments(self) -> list[str]:
        address = self.bootstrap if self._listeners else "127.0.0.1:0"  # the same after a restart
        settings = {
            "listeners": f"PLAINTEXT://{address}",
            "clientPort": self.zookeeper_port,
            "ottla.http.port": "0",
            **self.settings,
        }
        arguments = ["up", "--data", str(self.data_dir)]
        for name, value in settings.items():
            arguments += ["--set", f"{name}={value}"]
        return arguments
