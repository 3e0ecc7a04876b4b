"""Our coordination service against Apache ZooKeeper standalone, on this machine, in one run.

    python -m benchmarks.zookeeper [--rounds 5] [--seconds 1] [--only ottla|zookeeper] [--rows reads]

The load comes from `raw_load`, a client in C that is pinned to the last core; the servers have the first one
and take turns. ZooKeeper is warmed before it is measured (`--warmup`); its jars are those of the interop
suite (Maven). Both sync every write before they answer. Watches: 64 clients hold a persistent watch on a node
that one changes.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import (
    CLIENT_CORE,
    SERVER_CORE,
    cpu_seconds,
    on_core,
    own_and_kernel_seconds,
    pin,
    resident_mib,
)
from benchmarks.raw_load import ZOOKEEPER_ID_AT, Figures, RawLoad, Running, Shape, least_disturbed

from ottla.client.zookeeper import ConnectionLost, ZooKeeperClient
from ottla.protocol.zookeeper.headers import ConnectRequest, encode_connect_request, encode_request
from ottla.protocol.zookeeper.jute import encode
from ottla.protocol.zookeeper.operations import OpCode
from ottla.protocol.zookeeper.records import SetDataRequest, WatchedRequest, WatchTypeRequest
from ottla.testing import CoordinationProcess

NODE = "/bench"
SESSION_MS = 600_000  # opening ten thousand sessions, each synced, may take minutes
HELLO = encode_connect_request(ConnectRequest(0, 0, SESSION_MS, 0, bytes(16)))
GET = encode_request(0, OpCode.GET_DATA, encode(WatchedRequest(NODE, False)))
SET = encode_request(0, OpCode.SET_DATA, encode(SetDataRequest(NODE, bytes(100), -1)))
WATCH = encode_request(0, OpCode.ADD_WATCH, encode(WatchTypeRequest(NODE, 0)))
WATCHERS = 64
ROWS = ("sync writes", "reads", "watches", "sessions")
_START_SECONDS = 60
_ANSWER_MS_MAX = 250  # a server that is starting may take a connection and forget it


class Load:
    """`raw_load` as a ZooKeeper client on the last core."""

    def __init__(self, folder: Path) -> None:
        self._raw = RawLoad(folder)

    def start(
        self,
        port: int,
        request: bytes,
        shape: Shape,
        seconds: float,
        warmup: float = 0.5,
        opening: bytes = HELLO,
    ) -> Running:
        with on_core(CLIENT_CORE):
            return self._raw.start(
                f"127.0.0.1:{port}",
                request,
                shape,
                seconds,
                warm_up_seconds=warmup,
                id_at=ZOOKEEPER_ID_AT,
                opening=opening,
            )

    def run(self, port: int, request: bytes, shape: Shape, seconds: float) -> Figures:
        return self.start(port, request, shape, seconds).result()


# -- servers --------------------------------------------------------------------------------------------


class Server:
    def __init__(self, name: str, pid: int, port: int, started_seconds: float) -> None:
        self.name = name
        self.pid = pid
        self.port = port
        self.started_seconds = started_seconds
        self.idle_mib = resident_mib(pid)


@contextmanager
def ours(folder: Path) -> Iterator[Server]:
    settings = {"maxClientCnxns": "0", "maxCnxns": "20000", "maxSessionTimeout": str(SESSION_MS)}
    # An installed package has its bytecode; a checkout may not, and would compile all of it at every start.
    bytecode = {"PYTHONPYCACHEPREFIX": f"{folder}-bytecode", "PYTHONDONTWRITEBYTECODE": ""}
    with CoordinationProcess(Path(f"{folder}-before"), settings, env=bytecode):
        pass
    began = time.monotonic()
    with CoordinationProcess(folder, settings, env=bytecode) as process:
        port = int(process.zookeeper.rpartition(":")[2])
        _await(port)
        started = time.monotonic() - began
        pin(process.pid, SERVER_CORE)
        yield Server("Ottla", process.pid, port, started)


@contextmanager
def apache(folder: Path, command: list[str]) -> Iterator[Server]:
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "zoo.cfg").write_text(
        f"dataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
        f"admin.enableServer=false\nmaxSessionTimeout={SESSION_MS}\n"
    )
    heap = ["-Xms1G", "-Xmx1G"]
    main = ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg")]
    server_command = [command[0], *heap, *command[1:], *main]
    began = time.monotonic()
    with (
        (folder / "zookeeper.out").open("wb") as output,
        subprocess.Popen(["taskset", "-c", "0", *server_command], stdout=output, stderr=output) as process,
    ):
        try:
            _await(port)
            yield Server("ZooKeeper", process.pid, port, time.monotonic() - began)
        finally:
            process.kill()


def _await(port: int) -> None:
    """Until a session can be had."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with ZooKeeperClient("127.0.0.1", port, timeout_ms=_ANSWER_MS_MAX):
                return
        except ConnectionLost:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.02)


def zookeeper_java() -> list[str]:
    """Apache's jars, as the interop suite fetches them; both compilers, since this one runs for long."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from interop.builds import zookeeper_command

    return [part for part in zookeeper_command() if part != "-XX:TieredStopAtLevel=1"]


# -- what is measured -----------------------------------------------------------------------------------


def measure(servers: list[Server], load: Load, options: argparse.Namespace) -> dict[str, Figures]:
    """Figures of each server by its name. They take turns, so that what else the machine does meets both."""
    figures: dict[str, Figures] = {server.name: {"start, s": server.started_seconds} for server in servers}
    for server in servers:
        with ZooKeeperClient("127.0.0.1", server.port) as client:
            client.create(NODE, bytes(100))
        figures[server.name]["memory idle, MiB"] = server.idle_mib
    for kind, request, cases in (
        ("sync writes", SET, ((1, 1), (16, 1), (64, 1), (64, 4))),
        ("reads", GET, ((1, 1), (64, 1), (64, 4))),
    ):
        if kind not in options.rows:
            continue
        for server in servers:
            load.run(server.port, request, Shape(64, 4), options.warmup if server.name == "ZooKeeper" else 1)
        for clients, in_flight in cases:
            samples: dict[str, list[Figures]] = {server.name: [] for server in servers}
            for _ in range(options.rounds):
                for server in servers:
                    shape = Shape(clients, in_flight)
                    samples[server.name].append(_sample(server, load, request, shape, options.seconds))
            name = f"{kind}, {clients} clients x {in_flight}"
            for server in servers:
                for part in samples[server.name][0]:
                    values = [sample[part] for sample in samples[server.name]]
                    figures[server.name][f"{name}, {part}"] = statistics.median(values)
    for server in servers:
        own = figures[server.name]
        if "watches" in options.rows:
            own["watches fired/s"] = _watches(server, load, options.seconds + 1)
        own["memory loaded, MiB"] = resident_mib(server.pid)
        if "sessions" in options.rows:
            own |= _idle_sessions(server, load, options.sessions)
    return figures


def _sample(server: Server, load: Load, request: bytes, shape: Shape, seconds: float) -> Figures:
    def measure() -> Figures:
        before = own_and_kernel_seconds(server.pid)
        result = load.run(server.port, request, shape, seconds)
        after = own_and_kernel_seconds(server.pid)
        for part, began, ended in zip(("own", "kernel"), before, after, strict=True):
            result[f"{part} CPU µs"] = (ended - began) / result["all_requests"] * 1e6
        return result

    best = least_disturbed(measure)
    names = {"per_second": "per second", "p50_us": "p50 µs"}
    return {names.get(name, name): best[name] for name in (*names, "own CPU µs", "kernel CPU µs")}


def _watches(server: Server, load: Load, seconds: float) -> float:
    watching = load.start(server.port, GET, Shape(WATCHERS, 0), seconds, opening=HELLO + WATCH)
    load.run(server.port, SET, Shape(1, 4), seconds - 0.2)
    result = watching.result()
    return result["per_second"]


def _idle_sessions(server: Server, load: Load, sessions: int) -> Figures:
    """Each session says something every ten seconds, as one with a timeout of thirty does."""
    before = resident_mib(server.pid)
    idle = load.start(server.port, GET, Shape(sessions, 1, rate=sessions / 10), 60, warmup=0)
    deadline = time.monotonic() + 300
    while _open_connections(server.port) < sessions and time.monotonic() < deadline:
        assert idle.process.poll() is None, "the sessions were refused"
        time.sleep(0.2)
    time.sleep(5)
    spent, began = cpu_seconds(server.pid), time.monotonic()
    time.sleep(8)
    cpu_share = (cpu_seconds(server.pid) - spent) / (time.monotonic() - began)
    memory = resident_mib(server.pid)
    assert idle.process.poll() is None, "the sessions did not last"
    idle.kill()
    return {
        f"{sessions} idle sessions, CPU %": 100 * cpu_share,
        f"{sessions} idle sessions, memory, MiB": memory,
        f"{sessions} idle sessions, memory added, MiB": memory - before,
    }


def _open_connections(port: int) -> int:
    wanted = f":{port:04X}"
    established = "01"
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]  # Java's sockets are in the second
    lines = [line for table in tables for line in table.read_text().splitlines()[1:]]
    return sum(1 for line in lines if (f := line.split())[1].endswith(wanted) and f[3] == established)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1, help="of each round")
    parser.add_argument(
        "--warmup", type=float, default=15, help="seconds of load before ZooKeeper is measured"
    )
    parser.add_argument("--sessions", type=int, default=10_000, help="that idle")
    parser.add_argument("--only", choices=("ottla", "zookeeper"), help="one of the two")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="what is measured")
    parser.add_argument(
        "--rounds", type=int, default=5, help="in which the servers take turns; medians count"
    )
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    load = Load(folder)
    try:
        with contextlib.ExitStack() as stack:
            servers = []
            if options.only != "zookeeper":
                servers.append(stack.enter_context(ours(folder / "ours")))
            if options.only != "ottla":
                servers.append(stack.enter_context(apache(folder / "apache", zookeeper_java())))
            figures = measure(servers, load, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    mine, theirs = figures.get("Ottla", {}), figures.get("ZooKeeper", {})
    print(f"{'':44}{'Ottla':>12}{'ZooKeeper':>12}{'ratio':>8}")
    for name in mine or theirs:
        own, other = mine.get(name, math.nan), theirs.get(name, math.nan)
        print(f"{name:44}{own:12,.1f}{other:12,.1f}{own / other if other else math.nan:8.2f}")


if __name__ == "__main__":
    main()
