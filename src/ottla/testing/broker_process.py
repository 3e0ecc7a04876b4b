"""A real broker in a process of its own, for as long as a `with` block lasts.

    with BrokerProcess() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It listens on loopback, on ports that the system chose, and keeps its data in a temporary directory unless it
is given one. `kill` ends it as a crash would; `start` brings it back on the same data and ports.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.model.zookeeper_config import LISTENER_NAME
from ottla.testing.service_process import BrokerDied, ServiceProcess

__all__ = ["BrokerDied", "BrokerProcess"]


class BrokerProcess(ServiceProcess):
    @property
    def http(self) -> str | None:
        """host:port of /metrics, /healthz and /readyz."""
        http: str | None = self.announced["http"]
        return http

    @property
    def bootstrap(self) -> str:
        """host:port of the first listener."""
        return next(iter(self._listeners.values()))

    @property
    def zookeeper(self) -> str:
        """host:port for ZooKeeper clients."""
        return self.address(LISTENER_NAME)

    @property
    def ready_file(self) -> Path:
        return self.data_dir / "coordination" / "broker.json"

    def command(self) -> list[str]:
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "clientPort": "0", "ottla.http.port": "0"}
        if self._listeners:  # clients find it again after a restart
            settings["listeners"] = f"PLAINTEXT://{self.bootstrap}"
        if LISTENER_NAME in self._listeners:
            settings["clientPort"] = self.zookeeper.rpartition(":")[2]
        command = [sys.executable, "-m", "ottla", "up", "--data", str(self.data_dir)]
        for name, value in (settings | self.settings).items():
            command += ["--set", f"{name}={value}"]
        return command
