"""The loop itself, with an application that echoes frames: order, back-pressure, limits."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from ottla.log.file_range import FileRange
from ottla.log.system_files import SystemFiles
from ottla.model.clock import SystemClock
from ottla.model.listeners import Listener
from ottla.model.metrics import Registry
from ottla.protocol.codec import Chunk
from ottla.protocol.frames import FrameCutter
from ottla.server.accepting import SocketOptions
from ottla.server.application import Arrivals
from ottla.server.connection import Connection
from ottla.server.poller import EpollPoller, Poller, PortablePoller
from ottla.server.reactor import Reactor

LOOPBACK = Listener("PLAINTEXT", "127.0.0.1", 0, "PLAINTEXT")


class Answer:
    def __init__(self, chunks: Sequence[Chunk] | None) -> None:
        self.chunks = chunks
        self.blocks = False
        self.abandoned = False

    def abandon(self) -> None:
        self.abandoned = True


class Echo:
    """Sends every frame back, unless `answer_for` says something else."""

    def __init__(self) -> None:
        self.arrivals: list[str] = []
        self.held: list[tuple[Connection, Answer, bytes]] = []
        self.gone: list[Connection] = []
        self.answer_for: Callable[[bytes], Sequence[Chunk] | None] = lambda frame: [frame_of(frame)]

    def cutter(self, frame_bytes_max: int) -> FrameCutter:
        return FrameCutter(frame_bytes_max)

    def handle_frames(self, arrivals: Arrivals) -> list[Connection]:
        for connection, frames in arrivals:
            for frame in frames:
                data = bytes(frame)
                self.arrivals.append(connection.listener.name)
                answer = Answer(self.answer_for(data))
                connection.expect(answer)
                if answer.chunks is None:
                    self.held.append((connection, answer, data))
                else:
                    connection.answered()
        return []

    def disconnected(self, connection: Connection) -> None:
        self.gone.append(connection)


def frame_of(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def read_frame(peer: socket.socket) -> bytes:
    size = struct.unpack(">i", read_exactly(peer, 4))[0]
    return read_exactly(peer, size)


def read_exactly(peer: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise EOFError(data)
        data += part
    return data


@contextmanager
def running(
    echo: Echo, options: SocketOptions | None = None, poller: Poller | None = None
) -> Iterator[tuple[Reactor, int]]:
    reactor = Reactor(SystemClock(), options or SocketOptions(), Registry(), poller)
    port = reactor.listen(LOOPBACK, echo).port
    thread = threading.Thread(target=reactor.run)
    thread.start()
    try:
        yield reactor, port
    finally:
        reactor.post(reactor.stop)
        thread.join(10)
        reactor.close()


def connect(port: int) -> socket.socket:
    peer = socket.create_connection(("127.0.0.1", port), timeout=10)
    peer.settimeout(10)
    return peer


@pytest.mark.parametrize("make_poller", [EpollPoller, PortablePoller])
def test_frames_cut_anywhere_are_answered_in_order(make_poller: Callable[[], Poller]) -> None:
    stream = b"".join(frame_of(b"%d" % number * (number + 1)) for number in range(30))
    with running(Echo(), poller=make_poller()) as (_, port):
        for step in (1, 3, 7, 64, len(stream)):
            with connect(port) as peer:
                for start in range(0, len(stream), step):
                    peer.sendall(stream[start : start + step])
                for number in range(30):
                    assert read_frame(peer) == b"%d" % number * (number + 1)


@pytest.mark.parametrize("make_poller", [EpollPoller, PortablePoller])
def test_a_large_frame_comes_back_whole(make_poller: Callable[[], Poller]) -> None:
    data = bytes(range(256)) * 40_000  # 10 MB
    with running(Echo(), poller=make_poller()) as (_, port), connect(port) as peer:
        sender = threading.Thread(target=peer.sendall, args=(frame_of(data),))
        sender.start()
        assert read_frame(peer) == data
        sender.join()


def test_a_later_answer_waits_for_an_earlier_one() -> None:
    echo = Echo()
    echo.answer_for = lambda frame: None if frame == b"slow" else [frame_of(frame)]
    with running(echo) as (reactor, port), connect(port) as peer:
        peer.sendall(frame_of(b"slow") + frame_of(b"fast"))
        peer.settimeout(0.2)
        with pytest.raises(TimeoutError):
            peer.recv(1)
        peer.settimeout(10)

        def release() -> None:
            connection, answer, data = echo.held[0]
            answer.chunks = [frame_of(data)]
            connection.answered()

        reactor.post(release)
        assert [read_frame(peer), read_frame(peer)] == [b"slow", b"fast"]


@pytest.mark.parametrize("with_sendfile", [True, False])
def test_file_ranges_leave_from_the_file(
    tmp_path: Path, with_sendfile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.server.connection._HAS_SENDFILE", with_sendfile)
    files = SystemFiles()
    handle = files.create(str(tmp_path / "data"))
    content = bytes(range(256)) * 20_000
    handle.append([content])
    echo = Echo()
    size = 3_000_000

    def answer(frame: bytes) -> Sequence[Chunk]:
        return [struct.pack(">i", 4 + size + 4) + b"head", FileRange(handle, 100, size), b"tail"]

    echo.answer_for = answer
    with running(echo) as (_, port), connect(port) as peer:
        peer.sendall(frame_of(b"a") + frame_of(b"b"))
        for _ in range(2):
            assert read_frame(peer) == b"head" + content[100 : 100 + size] + b"tail"


def test_a_file_that_was_cut_short_closes_the_connection_and_is_named_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    handle = SystemFiles().create(str(tmp_path / "data"))
    handle.append([b"x" * 1_000])
    echo = Echo()
    echo.answer_for = lambda _: [struct.pack(">i", 2_000), FileRange(handle, 0, 2_000)]
    with running(echo) as (_, port), connect(port) as peer:
        peer.sendall(frame_of(b"a"))
        with pytest.raises((EOFError, ConnectionError)):
            read_frame(peer)
    assert f"{tmp_path / 'data'} ends before position 1000" in caplog.text


def test_a_peer_that_sends_and_never_reads_is_not_read_from_any_more() -> None:
    echo = Echo()
    with running(echo) as (_, port), connect(port) as peer:
        peer.setblocking(False)
        sent = 0
        block = frame_of(b"x" * 10_000) * 10
        deadline = time.monotonic() + 5
        idle_since = time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - idle_since < 0.5:
            try:
                sent += peer.send(block)
                idle_since = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        answered = len(echo.arrivals)
        assert answered * 10_004 < 8_000_000, "the reactor kept reading"
        with connect(port) as other:
            other.sendall(frame_of(b"hello"))
            assert read_frame(other) == b"hello"


def test_a_connection_reset_while_nobody_reads_it_is_noticed() -> None:
    echo = Echo()
    echo.answer_for = lambda frame: None
    with running(echo) as (_, port):
        peer = connect(port)
        peer.sendall(frame_of(b"x") * 100)  # as many requests as may be in flight: reading stops
        wait_until(lambda: len(echo.held) == 100)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()  # a reset
        wait_until(lambda: len(echo.gone) == 1)
        assert all(answer.abandoned for _, answer, _ in echo.held)


def test_connections_per_address_are_limited_and_freed() -> None:
    echo = Echo()
    options = SocketOptions(connections_per_address_max=lambda _: 2)
    with running(echo, options) as (_, port):
        first, second, third = connect(port), connect(port), connect(port)
        assert third.recv(1) == b""
        first.close()
        wait_until(lambda: len(echo.gone) == 1)
        with connect(port) as fourth:
            fourth.sendall(frame_of(b"hello"))
            assert read_frame(fourth) == b"hello"
        second.close()
        third.close()


def test_a_listener_with_options_of_its_own_counts_its_own_connections() -> None:
    echo = Echo()
    with running(echo, SocketOptions(connections_per_address_max=lambda _: 1)) as (reactor, port):
        own = SocketOptions(connections_per_address_max=lambda _: 2, request_bytes_max=10)
        other_port = reactor.listen(LOOPBACK, echo, options=own).port
        with connect(port), connect(other_port) as first, connect(other_port) as second:
            first.sendall(frame_of(b"ten bytes!"))
            assert read_frame(first) == b"ten bytes!"
            second.sendall(frame_of(b"eleven byte"))
            assert second.recv(1) == b""


def test_what_is_pushed_leaves_behind_given_answers_and_before_awaited_ones() -> None:
    echo = Echo()
    echo.answer_for = lambda _: None
    with running(echo) as (reactor, port), connect(port) as peer:
        peer.sendall(frame_of(b"later"))
        wait_until(lambda: len(echo.held) == 1)
        connection, answer, _ = echo.held[0]

        def push() -> None:
            connection.push(frame_of(b"pushed"))
            answer.chunks = [frame_of(b"answer")]
            connection.answered()
            connection.push(frame_of(b"pushed behind"))

        reactor.post(push)
        assert [read_frame(peer) for _ in range(3)] == [b"pushed", b"answer", b"pushed behind"]


def test_a_connection_that_ends_is_closed_when_everything_owed_is_sent() -> None:
    echo = Echo()
    echo.answer_for = lambda _: None
    with running(echo) as (reactor, port), connect(port) as peer:
        peer.sendall(frame_of(b"first"))
        wait_until(lambda: len(echo.held) == 1)
        connection, answer, _ = echo.held[0]
        reactor.post(connection.end)

        def finish() -> None:
            answer.chunks = [frame_of(bytes(1_000_000))]
            connection.answered()

        reactor.post(finish)
        assert read_frame(peer) == bytes(1_000_000)
        assert peer.recv(1) == b""
        wait_until(lambda: len(echo.gone) == 1)


def test_control_connections_are_served_before_data_in_every_turn() -> None:
    echo = Echo()
    reactor = Reactor(SystemClock(), SocketOptions(), Registry())
    data_port = reactor.listen(LOOPBACK, echo).port
    control = Listener("CONTROL", "127.0.0.1", 0, "PLAINTEXT")
    control_port = reactor.listen(control, echo, control=True).port
    peers = [connect(data_port) for _ in range(20)]
    peers.insert(10, connect(control_port))
    for _ in range(3):
        reactor.turn(wait_ms_max=50)
    echo.arrivals.clear()
    for peer in peers:
        peer.sendall(frame_of(b"x"))
    time.sleep(0.05)
    reactor.turn(wait_ms_max=50)
    assert echo.arrivals[0] == "CONTROL"
    assert len(echo.arrivals) == 21
    for peer in peers:
        peer.close()
    reactor.close()


def test_unfinished_frames_of_all_connections_stay_within_the_limit() -> None:
    echo = Echo()
    options = SocketOptions(queued_request_bytes_max=1_000_000)
    with running(echo, options) as (reactor, port):
        peers = [connect(port) for _ in range(10)]
        for peer in peers:
            with suppress(ConnectionError):  # some are dropped before they have sent all of it
                peer.sendall(struct.pack(">i", 50_000_000) + b"x" * 300_000)
        wait_until(lambda: len(echo.gone) >= 5)
        held: SimpleQueue[int] = SimpleQueue()  # asked between turns: within one it may be more for a moment
        reactor.post(lambda: held.put(reactor._held_bytes))
        assert held.get(timeout=30) <= 1_000_000
        for peer in peers:
            peer.close()


def test_what_other_threads_post_runs_on_the_owner_in_order() -> None:
    with running(Echo()) as (reactor, _):
        seen: list[int] = []
        owners: set[int] = set()

        def note(number: int) -> None:
            seen.append(number)
            owners.add(threading.get_ident())

        for number in range(1_000):
            reactor.post(lambda n=number: note(n))  # type: ignore[misc]
        wait_until(lambda: len(seen) == 1_000)
        assert seen == list(range(1_000))
        assert len(owners) == 1
        assert threading.get_ident() not in owners


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
