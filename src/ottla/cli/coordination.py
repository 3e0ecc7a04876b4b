"""`ottla coordination up`: the coordination service alone, for brokers and ZooKeeper clients elsewhere."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.data_home import data_home
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.log_lines import FORMATS, set_up_logging
from ottla.cli.options import add_output, add_verb, add_verbs
from ottla.cli.output import print_facts, styled

if TYPE_CHECKING:
    from ottla.model.zookeeper_config import ZooKeeperConfig
    from ottla.node.coordination_node import CoordinationNode

READY_FILE = "coordination.json"
"""Beside the data while the service runs: its process and where it listens."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    up_parser = add_verb(add_verbs(parser), "up", up, "run the coordination service alone, in the foreground")
    up_parser.add_argument(
        "--data",
        metavar="DIR",
        help=f"where the znodes are kept (default: {_default_data()})",
    )
    up_parser.add_argument(
        "--port", type=int, metavar="N", help="listen on 127.0.0.1:N (default: 2181; 0 takes a free one)"
    )
    up_parser.add_argument("--config", metavar="FILE", help="settings by ZooKeeper's names, as in zoo.cfg")
    up_parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting, as many as you like",
    )
    up_parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default=os.environ.get("OTTLA_LOG_FORMAT") or "text",
        help="how log lines look (default: OTTLA_LOG_FORMAT, text)",
    )
    add_output(up_parser)
    up_parser.set_defaults(debug=False)


def _default_data() -> str:
    return os.path.join(data_home(), "coordination")


def up(options: argparse.Namespace) -> int:
    from ottla.node import garbage

    garbage.postpone()
    from ottla.node.coordination_node import CoordinationFailed, CoordinationNode

    config = _config(options)
    set_up_logging(options.log_format, None, debug=options.debug)
    node = CoordinationNode(config)
    _start(node)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.ask_to_stop())
    garbage.settle()
    ready_file = os.path.join(config.data_dir, READY_FILE)
    try:
        node.run(on_serving=lambda: _announce(node, ready_file, options.output))
    except CoordinationFailed as error:
        raise CommandFailed(f"stopped: {error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(ready_file)
    return ExitCode.DONE


def _config(options: argparse.Namespace) -> ZooKeeperConfig:
    from ottla.model.config_types import InvalidSetting
    from ottla.model.zookeeper_settings import NO_PORT

    data = os.path.normpath(options.data or _default_data())
    own = {} if options.port is None else {"clientPort": str(options.port)}
    try:
        config = _config_of_own_settings(options, data, own)
        if config is None:
            config = _config_among_all_settings(options, data, own)
    except InvalidSetting as error:
        raise CommandFailed(str(error), exit_code=ExitCode.WRONG_USE) from error
    if config.listener is None:
        raise CommandFailed(
            f"clientPort={NO_PORT}: a service without a port is of no use",
            "leave it out, or choose a port",
            ExitCode.WRONG_USE,
        )
    return config


def _config_of_own_settings(
    options: argparse.Namespace, data: str, own: Mapping[str, str]
) -> ZooKeeperConfig | None:
    """None when there are others among them, or something is wrong."""
    from ottla.model.config_types import InvalidSetting
    from ottla.model.zookeeper_config import knows_all, zookeeper_config_of

    given = {name.strip(): text for name, _, text in (each.partition("=") for each in options.set)}
    if options.config is not None or not knows_all(given) or not all("=" in each for each in options.set):
        return None
    try:
        return zookeeper_config_of({**own, **given}, data)
    except InvalidSetting:
        return None


def _config_among_all_settings(
    options: argparse.Namespace, data: str, own: Mapping[str, str]
) -> ZooKeeperConfig:
    """For files, which may hold a broker's settings too, and for names that are not known: what is wrong with
    them is told as for a broker. All settings there are take a good part of a start, and of its memory.
    """
    from pathlib import Path

    from ottla.node.settings import load_settings

    # A log directory is not used, but must not be around the one that is.
    assignments = [f"ottla.coordination.dir={data}", f"log.dirs={data}.log"]
    assignments += (f"{name}={text}" for name, text in own.items())
    file = None if options.config is None else Path(options.config)
    return load_settings(file, [*assignments, *options.set]).zookeeper


def _start(node: CoordinationNode) -> None:
    """Turns every way a start can fail into cause and cure."""
    from errno import EADDRINUSE

    from ottla.log.files import DirectoryLocked
    from ottla.model.problems import CorruptData
    from ottla.node.coordination_node import CoordinationFailed

    try:
        node.start()
    except DirectoryLocked as error:
        raise CommandFailed(
            f"cannot start: another process uses the data in {node.config.data_dir}",
            "stop it, or choose another directory with --data",
        ) from error
    except CoordinationFailed as error:
        from ottla.cli.port_owner import port_owner

        owner = port_owner(node.config.listener.port) if node.config.listener else None
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == EADDRINUSE and owner:
            raise CommandFailed(f"cannot start: {error} (it is taken by {owner})") from error
        raise CommandFailed(f"cannot start: {error}") from error
    except CorruptData as error:
        raise CommandFailed(f"cannot start: {error}") from error


def _announce(node: CoordinationNode, ready_file: str, form: str) -> None:
    listener = node.listener
    assert listener is not None
    address = f"{listener.host}:{listener.port}"
    temporary = f"{ready_file}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        # Written by hand: an address that was bound holds nothing that JSON would have to escape.
        file.write(f'{{"pid": {os.getpid()}, "zookeeper": "{address}"}}')
    os.rename(temporary, ready_file)
    if form == "table":
        _print_welcome(address, node.config.data_dir)
    else:
        print_facts({"pid": os.getpid(), "zookeeper": address, "data": node.config.data_dir}, form)
    sys.stdout.flush()


def _print_welcome(address: str, data: str) -> None:
    print(styled("Ottla coordination is up.", "bold"))
    for name, text in (
        ("listens on", f"{address} (ZooKeeper's protocol)"),
        ("keeps data", data),
        ("try it", f"ottla zk ls / --server {address}"),
        ("stop it", "Ctrl-C"),
    ):
        print(f"  {styled(f'{name:<10}', 'dim')}  {text}")
