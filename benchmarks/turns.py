"""The owner's turns by themselves, in one process: what a request costs, with nothing between turns.

    python -m benchmarks.turns [--seconds 1] [--only produce] [--durable]

The client sends in the same thread, and only the time of `Reactor.turn` counts, by the thread's own clock: so
the figures hardly depend on what else the machine does. µs per request, kernel included: the best, and the
tenth of the way up.
"""

from __future__ import annotations

import argparse
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import topics
from benchmarks.against_kafka.families.groups import group_of
from benchmarks.against_kafka.rows import OTTLA, OTTLA_UNFLUSHED
from benchmarks.questions import KIB, MIB, Question, api_versions, fetch, offset_commit, produce

from ottla.node.broker import Broker
from ottla.node.settings import load_settings

_ROWS = (
    ("ApiVersions, 64 connections", api_versions(), 64, 1),
    ("ApiVersions, one connection", api_versions(), 1, 1),
    ("produce 1 x 100 B, 64 connections", produce(100), 64, 1),
    ("produce 1 x 100 B, one connection", produce(100), 1, 1),
    ("produce 16 KiB, 4 x 4", produce(16 * KIB), 4, 4),
    ("produce 1 MiB, 4 x 2", produce(MIB), 4, 2),
    ("fetch 64 KiB, 4 connections", fetch(64 * KIB, fetch_offset=1), 4, 1),
    ("fetch 1 MiB, 4 connections", fetch(MIB, fetch_offset=1), 4, 1),
    ("OffsetCommit, 16 connections", None, 16, 1),
)


class Client:
    """Some connections that each keep a request or more under way. Sends and receives without waiting."""

    def __init__(self, broker: Broker, request: bytes, connections: int, in_flight: int) -> None:
        self._sockets = []
        for _ in range(connections):
            sock = socket.create_connection((broker.listeners[0].host, broker.listeners[0].port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            self._sockets.append(sock)
            broker._reactor.turn(5)  # more than a backlog would not be let in
        self._request = memoryview(request)
        self._room = bytearray(4 * MIB)
        self._unsent = [self._request[:0]] * connections
        self._left = [0] * connections  # of the answer under way
        self._waiting = [0] * connections
        self._in_flight = in_flight

    def go_on(self) -> int:
        """Sends and receives what can be; how many answers got whole."""
        answers = 0
        for at, sock in enumerate(self._sockets):
            answers += self._receive(at, sock)
            while self._unsent[at] or self._waiting[at] < self._in_flight:
                if not self._unsent[at]:
                    self._unsent[at] = self._request
                    self._waiting[at] += 1
                try:
                    self._unsent[at] = self._unsent[at][sock.send(self._unsent[at]) :]
                except BlockingIOError:
                    break
        return answers

    def _receive(self, at: int, sock: socket.socket) -> int:
        answers = 0
        try:
            count = sock.recv_into(self._room)
        except BlockingIOError:
            return 0
        position = 0
        while position < count:
            if not self._left[at]:  # answers are small here, or come alone: their lengths come in one piece
                self._left[at] = 4 + int.from_bytes(self._room[position : position + 4], "big")
            taken = min(self._left[at], count - position)
            position += taken
            self._left[at] -= taken
            if not self._left[at]:
                answers += 1
                self._waiting[at] -= 1
        return answers

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def served(broker: Broker, work: threading.Thread) -> None:
    """Turns, while somebody in another thread asks."""
    work.start()
    while work.is_alive():
        broker._reactor.turn(5)
    work.join()


def samples(broker: Broker, client: Client, seconds: float) -> Iterator[float]:
    """µs per request over a few turns each, from where the first one of them began."""
    turn, now = broker._reactor.turn, time.thread_time_ns
    end = time.monotonic() + seconds
    spent = answers = 0
    while time.monotonic() < end:
        answers += client.go_on()
        if answers >= 16:
            yield spent / answers / 1000
            spent = answers = 0
        began = now()
        turn(5)
        spent += now() - began


def measure(broker: Broker, address: str, folder: Path, row: tuple, seconds: float) -> str:  # type: ignore[type-arg]
    name, question, connections, in_flight = row
    made: dict[str, object] = {}

    def prepare() -> None:
        context = made["topic"] = topics.topic(address, folder)
        made["name"] = topic = context.__enter__()
        topics.fill(address, topic, 4 * MIB)
        asked: Question = question or offset_commit(group_of(address))
        made["request"] = asked.encoded(topic)

    served(broker, threading.Thread(target=prepare))
    request = made["request"]
    assert isinstance(request, bytes)
    client = Client(broker, request, connections, in_flight)
    list(samples(broker, client, 0.3))  # warms
    found = sorted(list(samples(broker, client, seconds))[1:])  # the first has answers of turns before
    client.close()
    broker._reactor.turn(5)
    context = made["topic"]
    served(broker, threading.Thread(target=lambda: context.__exit__(None, None, None)))  # type: ignore[attr-defined]
    return (
        f"{name:<36}{found[0]:9.1f}{found[len(found) // 10]:9.1f}{found[len(found) // 2]:9.1f}{len(found):8}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--durable", action="store_true", help="as it comes: answers wait for the disk")
    options = parser.parse_args()
    setup = OTTLA if options.durable else OTTLA_UNFLUSHED
    with tempfile.TemporaryDirectory() as place:
        given = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": f"{place}/log",
            "ottla.coordination.dir": f"{place}/coordination",
            "ottla.http.port": "-1",
            "clientPort": "0",
            **setup.settings,
        }
        broker = Broker(load_settings(None, [f"{name}={value}" for name, value in given.items()]))
        broker.start()
        address = f"{broker.listeners[0].host}:{broker.listeners[0].port}"
        print(f"{'µs per request':<36}{'best':>9}{'10 %':>9}{'median':>9}{'samples':>8}")
        try:
            for row in _ROWS:
                if options.only in row[0]:
                    print(measure(broker, address, Path(place), row, options.seconds), flush=True)
        finally:
            broker.ask_to_stop()
            broker.run()


if __name__ == "__main__":
    main()
