"""`ottla doctor`: what this installation and machine can do for a broker, and what would make them better."""

from __future__ import annotations

import argparse
import os
import platform
import resource
import select
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ottla import __version__, compiled_modules
from ottla.cli.broker_home import add_home, broker_home
from ottla.cli.options import add_output
from ottla.cli.output import print_rows
from ottla.model.values import NamedTuple
from ottla.records import kernel_is_compiled

_OPEN_FILES_WANTED = 20_000  # ten thousand partitions and as many connections
_DISK_FREE_SHARE = 0.1
_SWAPPINESS_MAX = 10  # a broker lives on the page cache; its own memory must not be swapped for it
_KERNEL_WITH_NOWAIT = (4, 14)  # preadv2(RWF_NOWAIT): cold data is recognised without waiting for it
_NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")
_MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")


class Finding(NamedTuple):
    what: str
    value: str
    advice: str = ""  # empty: all is well


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_home(parser)
    add_output(parser)
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    home = broker_home(options)
    findings = [
        Finding("ottla", __version__),
        Finding("python", platform.python_version()),
        _kernel(),
        Finding("poller", "epoll")
        if hasattr(select, "epoll")
        else Finding("poller", "portable", "slower than Linux's epoll"),
        Finding("sendfile", "yes")
        if hasattr(os, "sendfile")
        else Finding("sendfile", "no", "records are copied"),
        _system(),
        _open_files(),
        *_linux_settings(),
        *(finding for directory in home.settings.log_dirs for finding in _disk(directory)),
    ]
    print_rows([finding._asdict() for finding in findings], options.output)
    return 0


def _kernel() -> Finding:
    if kernel_is_compiled():
        return Finding("record kernel", "compiled")
    if os.environ.get("OTTLA_KERNEL") == "python":
        return Finding("record kernel", "python", "OTTLA_KERNEL=python is set; everything works, slower")
    cure = (
        "sources have changed since they were compiled: `make setup` compiles them again"
        if compiled_modules.are_outdated()
        else "install a C compiler and reinstall for the compiled one"
    )
    return Finding("record kernel", "python", f"everything works, slower; {cure}")


def _system() -> Finding:
    value = f"{platform.system()} {platform.release()}"
    if sys.platform != "linux":
        return Finding("system", value, "fine for development; Linux is the platform for production")
    numbers = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2] if part.isdigit())
    if numbers < _KERNEL_WITH_NOWAIT:
        return Finding("system", value, "Linux 4.14 or newer reads cold data without holding up the rest")
    return Finding("system", value)


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= _OPEN_FILES_WANTED:
        return Finding("open files", str(soft))
    way = (
        f"`ulimit -n {_OPEN_FILES_WANTED}`"
        if hard == resource.RLIM_INFINITY or hard >= _OPEN_FILES_WANTED
        else f"LimitNOFILE={_OPEN_FILES_WANTED} in the systemd unit, or /etc/security/limits.conf,"
    )
    return Finding("open files", str(soft), f"{way} for many partitions and connections")


def _linux_settings() -> Iterator[Finding]:
    swappiness = _proc_number("vm/swappiness")
    if swappiness is not None:
        advice = f"`sysctl vm.swappiness={_SWAPPINESS_MAX}` or less" if swappiness > _SWAPPINESS_MAX else ""
        yield Finding("swappiness", str(swappiness), advice)
    backlog = _proc_number("net/core/somaxconn")
    if backlog is not None and backlog < 128:
        yield Finding(
            "accept queue", str(backlog), "`sysctl net.core.somaxconn=1024`: bursts of clients wait less"
        )


def _proc_number(name: str) -> int | None:
    try:
        return int(Path("/proc/sys", name).read_text())
    except (OSError, ValueError):
        return None


def _disk(directory: Path) -> Iterator[Finding]:
    existing = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    usage = shutil.disk_usage(existing)
    advice = "" if usage.free > usage.total * _DISK_FREE_SHARE else "nearly full: a full disk refuses writes"
    yield Finding("disk", f"{usage.free / 2**30:.1f} of {usage.total / 2**30:.1f} GiB free", advice)
    kind = _filesystem(existing)
    if kind is not None:
        advice = ""
        if kind in _NETWORK_FILESYSTEMS:
            advice = "a network file system makes every sync slow, and its locks are not to be trusted"
        elif kind in _MEMORY_FILESYSTEMS:
            advice = "memory: nothing survives a power cut; choose another --data"
        yield Finding("file system", kind, advice)
    if not os.access(existing, os.W_OK):
        yield Finding("data", str(directory), f"{existing} is not writable for this user")


def _filesystem(path: Path) -> str | None:
    """The type of the mount that holds `path`."""
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return None
    holding = [(len(where), kind) for _, where, kind, *_ in mounts if path.is_relative_to(where)]
    return max(holding)[1] if holding else None
