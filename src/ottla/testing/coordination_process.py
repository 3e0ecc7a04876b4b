"""The coordination service alone in a process of its own, for ZooKeeper clients.

with CoordinationProcess() as coordination:
    client = KazooClient(coordination.zookeeper)
"""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.testing.service_process import ServiceProcess


class CoordinationProcess(ServiceProcess):
    @property
    def ready_file(self) -> Path:
        return self.data_dir / "tree" / "coordination.json"

    def command(self) -> list[str]:
        command = [sys.executable, "-m", "ottla", "coordination", "up", "--port", self.zookeeper_port]
        command += ["--data", str(self.data_dir / "tree")]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        return command
