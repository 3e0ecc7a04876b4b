"""`ottla down`: stops the broker of this machine; returns when everything is on the disk and it is gone."""

from __future__ import annotations

import argparse
import os
import signal
import time

from ottla.cli.broker_home import BrokerHome, add_home, broker_home
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.options import add_output
from ottla.cli.output import Row, print_done
from ottla.cli.progress import Waiting

_POLL_SECONDS = 0.01


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument(
        "--timeout", type=float, default=60, metavar="SECONDS", help="how long to wait (default: 60)"
    )
    add_output(parser)
    parser.set_defaults(run=down)


def down(options: argparse.Namespace) -> int:
    home = broker_home(options)
    running = home.running()
    if running is None:
        raise CommandFailed(
            f"no broker runs on the data in {home}",
            "name the --data or --config that `ottla up` was given",
            ExitCode.NO_BROKER,
        )
    try:
        os.kill(running.pid, signal.SIGTERM)
    except PermissionError as error:
        raise CommandFailed(
            f"the broker with pid {running.pid} is another user's", "stop it as that user"
        ) from error
    _await_end(home, running.pid, options.timeout)
    failure = home.failure()
    if failure is not None:
        raise CommandFailed(f"the broker with pid {running.pid} stopped, but not cleanly: {failure}")
    row: Row = {"broker": running.node_id, "pid": running.pid}
    print_done([row], options.output, f"Ottla broker {running.node_id} (pid {running.pid}) is down.")
    return ExitCode.DONE


def _await_end(home: BrokerHome, pid: int, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    with Waiting("the broker is writing everything down") as waiting:
        while home.is_ending(pid):
            if time.monotonic() > deadline:
                raise CommandFailed(
                    f"the broker with pid {pid} is still stopping after {timeout_seconds:g} s",
                    f"wait, or `kill -9 {pid}`: what was acknowledged is safe, the next start takes longer",
                )
            waiting.tick()
            time.sleep(_POLL_SECONDS)
