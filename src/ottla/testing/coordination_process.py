"""The coordination service alone in a process of its own, for ZooKeeper clients.

with CoordinationProcess() as coordination:
    client = KazooClient(coordination.zookeeper)
"""

from __future__ import annotations

from pathlib import Path

from ottla.testing.service_process import ServiceProcess


class CoordinationProcess(ServiceProcess):
    @property
    def ready_file(self) -> Path:
        return self.data_dir / "tree" / "coordination.json"

    def arguments(self) -> list[str]:
        arguments = ["coordination", "up", "--port", self.zookeeper_port]
        arguments += ["--data", str(self.data_dir / "tree")]
        for name, value in self.settings.items():
            arguments += ["--set", f"{name}={value}"]
        return arguments
