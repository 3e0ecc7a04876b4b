"""`ottla up`: runs a broker in the foreground, or with `-d` in the background, and says where it is."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.cli.broker_home import BrokerHome, Running, add_home, broker_home
from ottla.cli.clusters import DEFAULT_BOOTSTRAP
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.log_lines import FORMATS, set_up_logging
from ottla.cli.options import add_output
from ottla.cli.output import print_facts, styled
from ottla.model.values import asdict

if TYPE_CHECKING:
    from ottla.node.broker import Broker
    from ottla.node.failures import PortTaken

log = logging.getLogger(__name__)

_EVERYWHERE = ("", "0.0.0.0", "::", "[::]")  # to listen there; nobody can be asked there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-d", "--detach", action="store_true", help="return when the broker answers; it runs on"
    )
    parser.add_argument("--port", type=int, metavar="N", help="listen on 127.0.0.1:N (default: 9092)")
    add_home(parser)
    parser.add_argument(
        "--coordination",
        metavar="HOST:PORT,...",
        help="the Apache ZooKeeper ensemble that keeps the cluster's state (default: the broker keeps it)",
    )
    parser.add_argument(
        "--log-format",
        choices=FORMATS,
        default=os.environ.get("OTTLA_LOG_FORMAT") or "text",
        help="how log lines look (default: OTTLA_LOG_FORMAT, text)",
    )
    parser.add_argument(
        "--log-file", type=Path, metavar="FILE", help="log there instead of the terminal; kept below 64 MiB"
    )
    add_output(parser)
    parser.set_defaults(run=up, debug=False)


def up(options: argparse.Namespace) -> int:
    if options.log_format not in FORMATS:
        raise CommandFailed(
            f"OTTLA_LOG_FORMAT is {options.log_format!r}", "expected text or json", ExitCode.WRONG_USE
        )
    home = broker_home(options)
    already = home.running()
    if already is not None:
        raise CommandFailed(
            f"the broker with pid {already.pid} runs already on the data in {home}",
            "`ottla status` shows it; --data and --port start a second one beside it",
        )
    if not options.detach:
        return _serve(home, options)
    from ottla.cli.background import start_in_background

    for warning in home.settings.warnings:
        print(f"note: {warning}", file=sys.stderr)
    _print_running(start_in_background(home, options), options)
    return ExitCode.DONE


def _serve(home: BrokerHome, options: argparse.Namespace) -> int:
    from ottla.node import garbage

    garbage.postpone()
    from ottla.node.broker import Broker
    from ottla.node.failures import BrokerFailed

    set_up_logging(options.log_format, options.log_file, debug=options.debug)
    for warning in home.settings.warnings:
        log.warning("%s", warning)
    broker = Broker(home.settings, surround=getattr(options, "surround", None))
    _start(broker, home)
    _on_signals(lambda *_: broker.ask_to_stop())
    garbage.settle()
    failure = None
    try:
        broker.run(on_serving=lambda: _announce(broker, home, options))
    except BrokerFailed as error:
        failure = str(error)
        raise CommandFailed(f"stopped: {error}") from error
    except BaseException as error:
        failure = f"{type(error).__name__}: {error}"
        raise
    finally:
        _on_signals(signal.SIG_IGN)  # a second one must not kill a process that is on its way out
        home.withdraw(failure)
    return ExitCode.DONE


def _on_signals(action: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, action)


def _start(broker: Broker, home: BrokerHome) -> None:
    """Turns every way a start can fail into cause and cure."""
    from ottla.log.directory_properties import WrongDirectory
    from ottla.log.files import DirectoryLocked
    from ottla.model.errors import CorruptData
    from ottla.node.failures import BrokerFailed, PortTaken

    try:
        broker.start()
    except DirectoryLocked as error:
        running = home.running()
        by_whom = f"the broker with pid {running.pid}" if running else "another process"
        raise CommandFailed(
            f"cannot start: {by_whom} uses the data in {Path(error.filename or home.directory).parent}",
            "`ottla down` stops it; --data and --port start a second one beside it",
        ) from error
    except PortTaken as error:
        raise _port_taken(error) from error
    except BrokerFailed as error:
        raise CommandFailed(f"cannot start: {error}") from error
    except (CorruptData, WrongDirectory) as error:
        raise CommandFailed(f"cannot start: {error}") from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise CommandFailed(f"cannot start: {place}{error.strerror or error}") from error


def _port_taken(error: PortTaken) -> CommandFailed:
    from ottla.cli.port_owner import port_owner

    owner = port_owner(error.port)
    if owner is None:
        return CommandFailed(f"cannot start: {error}")
    cure = f"`ottla status` tells whether it is a broker of yours; {error.cure}"
    return CommandFailed(f"cannot start: port {error.port} is taken by {owner}", cure)


def _announce(broker: Broker, home: BrokerHome, options: argparse.Namespace) -> None:
    running = Running(
        pid=os.getpid(),
        node_id=home.settings.node_id,
        version=__version__,
        started_ms=broker.clock.wall_ms(),
        listeners={listener.name: f"{listener.host}:{listener.port}" for listener in broker.listeners},
        data=[str(directory.resolve()) for directory in home.settings.log_dirs],
        zookeeper=f"{broker.zookeeper.host}:{broker.zookeeper.port}" if broker.zookeeper else None,
        http=f"{broker.http.host}:{broker.http.port}" if broker.http else None,
    )
    home.announce(running)
    _print_running(running, options)


def _print_running(running: Running, options: argparse.Namespace) -> None:
    if options.output == "table":
        _print_welcome(running, "Ctrl-C" if not options.detach else f"ottla down{_same_home(options)}")
    else:
        print_facts(asdict(running), options.output)
    sys.stdout.flush()


def _same_home(options: argparse.Namespace) -> str:
    """What `down` has to be told to find this broker; --set only moves it if it names directories."""
    given = [("--data", options.data), ("--config", options.config)]
    given += [("--set", each) for each in options.set if each.startswith(("log.dir", "ottla.coordination."))]
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in given if value is not None)


def _print_welcome(running: Running, stop: str) -> None:
    first = next(iter(running.listeners.values()))
    host, _, port = first.rpartition(":")
    reachable = f"localhost:{port}" if host in _EVERYWHERE else first
    at = "" if reachable == DEFAULT_BOOTSTRAP else f" -b {reachable}"
    print(styled(f"Ottla broker {running.node_id} is up (pid {running.pid}).", "bold"))
    rows = [("listens on", f"{name}://{address}") for name, address in running.listeners.items()]
    rows.append(("keeps data", ", ".join(running.data)))
    if running.zookeeper:
        rows.append(("zookeeper", running.zookeeper))
    if running.http:
        rows.append(("metrics", f"http://{running.http}/metrics"))
    rows.append(("try it", f"echo hello | ottla produce{at} greetings; ottla consume{at} greetings"))
    rows.append(("stop it", stop))
    for name, text in rows:
        print(f"  {styled(f'{name:<10}', 'dim')}  {text}")
