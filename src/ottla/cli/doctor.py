"""`ottla doctor`: what this installation can do, and what would make it better."""

from __future__ import annotations

import argparse
import os
import platform
import resource
import select

from ottla import __version__
from ottla.cli.options import add_output
from ottla.cli.output import print_rows
from ottla.records import kernel_is_compiled

_OPEN_FILES_WANTED = 20_000  # ten thousand partitions and as many connections


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    rows = [
        ("ottla", __version__, ""),
        ("python", platform.python_version(), ""),
        _kernel(),
        ("poller", "epoll", "") if hasattr(select, "epoll") else ("poller", "portable", "slower than epoll"),
        ("sendfile", "yes", "") if hasattr(os, "sendfile") else ("sendfile", "no", "records are copied"),
        (
            "open files",
            str(open_files),
            ""
            if open_files >= _OPEN_FILES_WANTED
            else f"`ulimit -n {_OPEN_FILES_WANTED}` for many partitions",
        ),
    ]
    print_rows(
        [{"what": name, "value": value, "advice": remark} for name, value, remark in rows], options.output
    )
    return 0


def _kernel() -> tuple[str, str, str]:
    if kernel_is_compiled():
        return "kernel", "compiled", ""
    if os.environ.get("OTTLA_KERNEL") == "python":
        return "kernel", "python", "because OTTLA_KERNEL=python is set; everything works, slower"
    return (
        "kernel",
        "python",
        "everything works, slower; install a C compiler and reinstall for the compiled one",
    )
