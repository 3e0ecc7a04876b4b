"""Concurrent clients on the wire while the service is killed: what they saw fits one order of writes."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from coordination.histories import Call, problems
from ottla.client.zookeeper import ConnectionLost, ZooKeeperClient, ZooKeeperError
from ottla.protocol.zookeeper.records import WatcherEvent
from ottla.testing import CoordinationProcess

PATHS = ("/a", "/b", "/c")
CLIENTS = 6
KILLS = 2
CALLS_BETWEEN_KILLS = 300
PATIENCE_SECONDS = 100
_BAD_VERSION = -103


class Recorder(threading.Thread):
    """A client that does one thing at a time, comes back when it is cut off, and notes what it sees."""

    def __init__(self, number: int, address: str, seed: int, calls: list[Call]) -> None:
        super().__init__(daemon=True)
        self.number = number
        self.calls = calls  # of all; appending is atomic
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self._host, _, self._port = address.rpartition(":")
        self._chance = random.Random(seed)
        self._versions: dict[str, int] = {}
        self._written = 0

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                try:
                    self._one_connection()
                except ConnectionLost:
                    time.sleep(0.02)
        except BaseException as error:
            self.failure = error

    def _one_connection(self) -> None:
        client = ZooKeeperClient(self._host, int(self._port))
        try:
            now = time.monotonic()
            self.calls.append(Call(self.number, "connect", "", now, now))
            while not self.stop.is_set():
                path = self._chance.choice(PATHS)
                if self._chance.random() < 0.5:
                    self._write(client, path)
                else:
                    self._read(client, path)
        finally:
            client.disconnect()

    def _write(self, client: ZooKeeperClient, path: str) -> None:
        self._written += 1
        call = Call(
            self.number, "write", path, time.monotonic(), None, b"%d-%d" % (self.number, self._written)
        )
        if self._chance.random() < 0.3:
            call.expected_version = self._versions.get(path, 0)
        self.calls.append(call)
        try:
            stat = client.set(path, call.value, call.expected_version)
        except ZooKeeperError as error:
            if error.code != _BAD_VERSION:
                raise
            self._note_events(client)
            self.calls.remove(call)
            return
        self._note_events(client)
        call.ended, call.zxid, call.version = time.monotonic(), stat.mzxid, stat.version
        self._versions[path] = stat.version

    def _read(self, client: ZooKeeperClient, path: str) -> None:
        began = time.monotonic()
        watch = self._chance.random() < 0.5
        value, stat = client.get(path, watch=watch)
        self._note_events(client)
        self.calls.append(
            Call(
                self.number,
                "read",
                path,
                began,
                time.monotonic(),
                value,
                stat.mzxid,
                stat.version,
                watch=watch,
            )
        )
        self._versions[path] = stat.version

    def _note_events(self, client: ZooKeeperClient) -> None:
        """Events that came before the answer; they are among the calls before it."""
        for event, zxid in client.take_events():
            assert isinstance(event, WatcherEvent)
            now = time.monotonic()
            self.calls.append(Call(self.number, "event", event.path, now, now, zxid=zxid))


@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_what_clients_saw_fits_one_order_of_writes(tmp_path: Path, seed: int) -> None:
    calls: list[Call] = []
    with CoordinationProcess(tmp_path) as service:
        host, _, port = service.zookeeper.rpartition(":")
        with ZooKeeperClient(host, int(port)) as client:
            for path in PATHS:
                began = time.monotonic()
                client.create(path, b"0")
                _, stat = client.get(path)
                calls.append(Call(-1, "write", path, began, time.monotonic(), b"0", stat.mzxid, 0))
        recorders = [
            Recorder(number, service.zookeeper, seed * 100 + number, calls) for number in range(CLIENTS)
        ]
        for recorder in recorders:
            recorder.start()
        for _ in range(KILLS):
            _wait_for_calls(calls, len(calls) + CALLS_BETWEEN_KILLS, recorders)
            service.kill()
            service.start()
        _wait_for_calls(calls, len(calls) + CALLS_BETWEEN_KILLS, recorders)
        for recorder in recorders:
            recorder.stop.set()
        for recorder in recorders:
            recorder.join(PATIENCE_SECONDS)
            assert recorder.failure is None, recorder.failure
    assert sum(call.kind == "connect" for call in calls) > CLIENTS
    assert any(call.kind == "event" for call in calls)
    assert problems(calls, linearizable_reads=True) == []


def _wait_for_calls(calls: list[Call], count: int, recorders: list[Recorder]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(calls) < count:
        assert time.monotonic() < deadline
        assert all(recorder.failure is None for recorder in recorders)
        time.sleep(0.01)
