"""Real databases for the tests: SQLite in a file, PostgreSQL and Redis as servers of the test's own."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

Connect = Callable[[], Any]
_SERVER_USER = "nobody"


def sqlite(folder: Path) -> Connect:
    return lambda: sqlite3.connect(folder / "business.db", timeout=30)


@contextmanager
def postgres() -> Iterator[Connect]:
    import psycopg

    with postgres_server() as address:
        yield lambda: psycopg.connect(address)


@contextmanager
def postgres_server() -> Iterator[str]:
    """A cluster made for the test; its server refuses to run as root, so somebody without rights runs it."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL's server is not installed here (Debian: postgresql)")
    binaries, port = Path(found[-1]).parent, _free_port()
    home = Path(tempfile.mkdtemp(prefix="ottla-postgres-"))
    as_user = _as_unprivileged(home)
    subprocess.run(
        [*as_user, binaries / "initdb", "-D", home / "data", "-U", "test", "-A", "trust", "--no-sync"],
        check=True,
        capture_output=True,
        cwd="/",
    )
    options = f"-p {port} -h 127.0.0.1 -k {home} -F"
    control = [*as_user, binaries / "pg_ctl", "-D", home / "data", "-w"]
    subprocess.run(
        [*control, "-l", home / "log", "-o", options, "start"],
        check=True,
        cwd="/",
        stdout=subprocess.DEVNULL,
    )
    try:
        yield f"host=127.0.0.1 port={port} user=test dbname=postgres"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd="/", capture_output=True)
        shutil.rmtree(home)


@contextmanager
def redis_server() -> Iterator[Any]:
    program = shutil.which("valkey-server") or shutil.which("redis-server")
    if program is None:
        pytest.skip("neither Valkey nor Redis is installed here (Debian: redis-server)")
    import redis

    home, port = Path(tempfile.mkdtemp(prefix="ottla-redis-")), _free_port()
    command = [*_as_unprivileged(home), program, "--port", str(port), "--bind", "127.0.0.1"]
    server = subprocess.Popen(
        [*command, "--dir", str(home), "--save", ""], stdout=subprocess.DEVNULL, cwd="/"
    )
    client = redis.Redis("127.0.0.1", port)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                client.ping()
                break
            except redis.ConnectionError:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield client
    finally:
        client.close()
        server.terminate()
        server.wait()
        shutil.rmtree(home)


def _as_unprivileged(home: Path) -> list[str]:
    if os.getuid() != 0:
        return []
    shutil.chown(home, _SERVER_USER)
    return ["setpriv", "--reuid", _SERVER_USER, "--clear-groups"]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
