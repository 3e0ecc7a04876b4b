"""`ottla logs`: what the broker in the background has logged; `-f` goes on as it logs more.

For programs a line is time, level, logger and message, whichever way the broker wrote it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ottla.cli.broker_home import BrokerHome, add_home, broker_home
from ottla.cli.failures import CommandFailed, ExitCode
from ottla.cli.log_lines import LEVEL_STYLES, fields_of, rotated
from ottla.cli.options import add_output, count
from ottla.cli.output import colourful, print_rows, styled

_POLL_SECONDS = 0.1
_WHOLE = ("json", "csv")  # forms with an end; what is followed has none, and comes as JSON lines
_COLUMNS = ("time", "level", "logger", "message")
_LEVEL = re.compile(r"\b(" + "|".join(LEVEL_STYLES) + r")\b")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="show new lines as they come")
    parser.add_argument(
        "-n",
        "--lines",
        type=count,
        default=200,
        metavar="N",
        help="how many of the last lines (default: 200)",
    )
    add_output(parser)
    parser.set_defaults(run=logs)


def logs(options: argparse.Namespace) -> int:
    home = broker_home(options)
    if not home.log_file.exists():
        raise _nothing(home)
    with home.log_file.open("rb") as current:
        last = deque(_lines(home.log_file, current), maxlen=options.lines)
        if options.output in _WHOLE and not options.follow:
            print_rows((fields_of(line) for line in last), options.output, _COLUMNS)
            return ExitCode.DONE
        show = _show if options.output == "table" else _show_fields
        for line in last:
            show(line)
        if options.follow:
            _follow(home.log_file, current, show)
    return ExitCode.DONE


def _nothing(home: BrokerHome) -> CommandFailed:
    if home.running() is not None:
        return CommandFailed(
            "the broker logs where it was started, not to a file", "look there", ExitCode.NOT_FOUND
        )
    return CommandFailed(
        f"no broker has run in the background on the data in {home}",
        "`ottla up -d` starts one; name the --data or --config of another",
        ExitCode.NOT_FOUND,
    )


def _lines(path: Path, current: BinaryIO) -> Iterator[bytes]:
    for older in rotated(path):
        with older.open("rb") as file:
            yield from file
    yield from current


def _follow(path: Path, current: BinaryIO, show: Callable[[bytes], None]) -> None:
    """Goes over to the next file when the broker does."""
    while True:
        line = current.readline()
        if line:
            show(line)
            continue
        sys.stdout.flush()
        time.sleep(_POLL_SECONDS)
        if path.exists() and path.stat().st_ino != os.fstat(current.fileno()).st_ino:
            for line in current:  # written between our last look and the change
                show(line)
            current = path.open("rb")


def _show_fields(line: bytes) -> None:
    print_rows([fields_of(line)], "jsonl")


def _show(line: bytes) -> None:
    text = line.decode(errors="replace")
    if colourful(sys.stdout):
        text = _LEVEL.sub(lambda level: styled(level[0], LEVEL_STYLES[level[0]]), text, count=1)
    sys.stdout.write(text)
