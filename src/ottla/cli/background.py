"""A broker in the background: starts the same program as a process of its own, and waits until it answers."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from ottla.cli.broker_home import BrokerHome, Running
from ottla.cli.failures import CommandFailed, ExitCode

_POLL_SECONDS = 0.01
_PATIENCE_SECONDS = 600  # a start after a crash reads every segment that was not closed


def start_in_background(home: BrokerHome, options: argparse.Namespace) -> Running:
    home.directory.mkdir(parents=True, exist_ok=True)
    with home.output_file.open("wb") as output:
        process = subprocess.Popen(
            _command(home, options),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in this terminal is not meant for it
        )
    return _await(home, process)


def _command(home: BrokerHome, options: argparse.Namespace) -> list[str]:
    """The same options without `-d`, and a log file, because nobody sees its terminal."""
    command = [sys.executable, "-m", "ottla", "up", "--log-format", options.log_format]
    command += ["--log-file", str(options.log_file or home.log_file)]
    if options.data is not None:
        command += ["--data", str(options.data)]
    if options.port is not None:
        command += ["--port", str(options.port)]
    if options.coordination is not None:
        command += ["--coordination", options.coordination]
    if options.config is not None:
        command += ["--config", str(options.config)]
    for assignment in options.set:
        command += ["--set", assignment]
    return command


def _await(home: BrokerHome, process: subprocess.Popen[bytes]) -> Running:
    from ottla.cli.progress import Waiting

    deadline = time.monotonic() + _PATIENCE_SECONDS
    with Waiting("the broker is reading its data") as waiting:
        while process.poll() is None and time.monotonic() < deadline:
            running = home.running()
            if running is not None and running.pid == process.pid:
                return running
            waiting.tick()
            time.sleep(_POLL_SECONDS)
    said = home.output_file.read_text(errors="replace").strip().removeprefix("ottla: ")
    if process.poll() is None:
        raise CommandFailed(
            f"the broker does not answer after {_PATIENCE_SECONDS} s",
            f"`ottla logs` tells what it does; it is the process {process.pid}",
        )
    code = next((code for code in ExitCode if code == process.returncode), ExitCode.FAILED)
    raise CommandFailed(said or f"the broker ended with {process.returncode}", exit_code=code)
