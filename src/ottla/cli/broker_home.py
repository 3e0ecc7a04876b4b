"""Where a broker on this machine lives: its data, whether it runs, what it said about itself.

`up`, `down`, `status` and `logs` find the same broker by the same options. The lock on the data says whether
one runs; the ready file says which process it is and where it listens.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from pathlib import Path

from ottla.cli.data_home import data_home
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.model.configs import InvalidSetting
from ottla.model.processes import is_alive
from ottla.model.values import asdict, dataclass
from ottla.node.settings import BrokerSettings, load_settings

LOG_FILE = "broker.log"
OUTPUT_FILE = "broker.out"
READY_FILE = "broker.json"
FAILURE_FILE = "broker.failure"
_LOCK_FILE = ".lock"


def default_data() -> Path:
    return Path(data_home())


@dataclass(frozen=True, slots=True)
class Running:
    """What a broker says of itself as soon as it serves."""

    pid: int
    node_id: int
    version: str
    started_ms: int
    listeners: dict[str, str]  # host:port by name, as bound; the first is for data
    data: list[str]
    http: str | None  # host:port of /metrics and /healthz
    zookeeper: str | None  # host:port for ZooKeeper clients


class BrokerHome:
    def __init__(self, directory: Path, settings: BrokerSettings) -> None:
        self.directory = directory
        self.settings = settings
        self.log_file = directory / LOG_FILE
        self.output_file = directory / OUTPUT_FILE  # what a broker in the background prints
        self._ready_file = directory / READY_FILE
        self._failure_file = directory / FAILURE_FILE

    def __str__(self) -> str:
        return ", ".join(str(directory) for directory in self.settings.log_dirs)

    # -- from outside --------------------------------------------------------------------------------------

    def running(self) -> Running | None:
        """The broker that serves from here; None when none does (yet)."""
        try:
            running = Running(**json.loads(self._ready_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return running if self.is_locked() and is_alive(running.pid) else None

    def is_locked(self) -> bool:
        """Whether a process holds the data, without getting in the way of one that wants to."""
        try:
            with (self.directory / _LOCK_FILE).open("rb") as lock:
                return _is_locked(lock.fileno())
        except FileNotFoundError:
            return False

    def is_ending(self, pid: int) -> bool:
        """Whether the broker that was asked to stop has something left to do."""
        return self.is_locked() or (self._ready_file.exists() and is_alive(pid))

    def failure(self) -> str | None:
        """Why the last broker stopped, when that was not its wish."""
        with contextlib.suppress(OSError):
            return self._failure_file.read_text().strip()
        return None

    # -- from the broker -----------------------------------------------------------------------------------

    def announce(self, running: Running) -> None:
        self._failure_file.unlink(missing_ok=True)
        temporary = self._ready_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(running)))
        temporary.rename(self._ready_file)

    def withdraw(self, failure: str | None = None) -> None:
        """The last thing a broker does; `down` waits for it."""
        if failure is not None:
            with contextlib.suppress(OSError):  # the disk may be what failed
                self._failure_file.write_text(failure + "\n")
        self._ready_file.unlink(missing_ok=True)


def add_home(parser: argparse.ArgumentParser) -> None:
    """The options that say which broker of this machine is meant."""
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"where everything is kept (default: {default_data()})"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings by Kafka's names: server.properties, or .toml"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting; may be given many times",
    )


def broker_home(options: argparse.Namespace) -> BrokerHome:
    """From options of `add_home`. What was given on the command line wins over environment and file."""
    assignments = []
    if options.data is not None:
        assignments += [
            f"log.dirs={options.data / 'log'}",
            f"ottla.coordination.dir={options.data / 'coordination'}",
        ]
    if getattr(options, "port", None) is not None:
        assignments.append(f"listeners=PLAINTEXT://127.0.0.1:{options.port}")
    if getattr(options, "coordination", None) is not None:
        assignments.append(f"zookeeper.connect={options.coordination}")
    try:
        settings = load_settings(
            options.config, assignments + options.set, environment=os.environ, home=default_data()
        )
    except InvalidSetting as error:
        raise CommandFailed(
            str(error), "`ottla config explain` lists every setting", ExitCode.WRONG_USE
        ) from error
    return BrokerHome(settings.coordination_dir, settings)


def _is_locked(fd: int) -> bool:
    import fcntl
    import struct

    query = getattr(fcntl, "F_OFD_GETLK", None)
    if query is None:  # no such question outside of Linux: the process in the ready file has to do
        return True
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind: int = struct.unpack_from("h", fcntl.fcntl(fd, query, asked))[0]
    return kind != fcntl.F_UNLCK
