"""`ottla up`: runs a broker in the foreground and says where it is."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import signal
import sys
from pathlib import Path

from ottla.log.directory_properties import WrongDirectory
from ottla.log.files import DirectoryLocked
from ottla.model.configs import InvalidSetting
from ottla.model.errors import CorruptData
from ottla.node.broker import Broker, BrokerFailed
from ottla.node.settings import BrokerSettings, load_settings

DEFAULT_DATA = Path("ottla-data")
READY_FILE = "broker.json"
"""Beside the data while a broker runs: its process and where it listens."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help=f"where everything is kept (default: ./{DEFAULT_DATA})"
    )
    parser.add_argument("--port", type=int, metavar="N", help="listen on 127.0.0.1:N (default: 9092)")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings by Kafka's names, as in server.properties"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting; may be given many times",
    )
    parser.set_defaults(run=up)


def up(options: argparse.Namespace) -> int:
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s"
    )
    try:
        settings = load_settings(
            options.config, _assignments(options.data, options.port, options.config, options.set)
        )
        broker = Broker(settings)
        broker.start()
        ready_file = settings.coordination_dir / READY_FILE
        _announce(broker, settings, ready_file)
    except DirectoryLocked as error:
        print(f"ottla: cannot start: {error.strerror} ({error.filename})", file=sys.stderr)
        return 1
    except (InvalidSetting, BrokerFailed, CorruptData, WrongDirectory, OSError) as error:
        print(f"ottla: cannot start: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: broker.ask_to_stop())
    gc.freeze()  # collections leave alone what the start made: with many partitions they would stop everybody
    try:
        broker.run()
    except BrokerFailed as failure:
        print(f"ottla: stopped: {failure}", file=sys.stderr)
        return 1
    finally:
        ready_file.unlink(missing_ok=True)
    return 0


def _assignments(data: Path | None, port: int | None, config: Path | None, given: list[str]) -> list[str]:
    """What the short options mean in settings; what was given with --set comes last and wins."""
    assignments = []
    names = {assignment.partition("=")[0].strip() for assignment in given}
    if data is not None or (config is None and not names & {"log.dirs", "log.dir"}):
        home = data or DEFAULT_DATA
        assignments += [f"log.dirs={home / 'log'}", f"ottla.coordination.dir={home / 'coordination'}"]
    if port is not None:
        assignments.append(f"listeners=PLAINTEXT://127.0.0.1:{port}")
    return assignments + given


def _announce(broker: Broker, settings: BrokerSettings, ready_file: Path) -> None:
    for warning in settings.warnings:
        print(f"note: {warning}", file=sys.stderr)
    first = broker.listeners[0]
    print(f"Ottla broker {settings.node_id} is up.")
    for listener in broker.listeners:
        print(f"  listens on  {listener}")
    print(f"  keeps data  {', '.join(str(directory) for directory in settings.log_dirs)}")
    print(f"  try it      kcat -b {first.host}:{first.port} -L")
    print("  stop it     Ctrl-C", flush=True)
    listeners = {listener.name: f"{listener.host}:{listener.port}" for listener in broker.listeners}
    content = json.dumps({"pid": os.getpid(), "listeners": listeners})
    temporary = ready_file.with_suffix(".tmp")
    temporary.write_text(content)
    temporary.rename(ready_file)
