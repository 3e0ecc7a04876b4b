"""Peers that take without giving: each costs bounded memory, and delays nobody else beyond reason."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.waiting import eventually
from hostile import figures, flood
from hostile.bystander import Bystander, median_in_peace_ms
from hostile.ground import MIB, Ground
from hostile.peer import Closed, Peer, batch_of, fetch_request, produce_request, request_bytes
from ottla.protocol import apis
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.metadata import MetadataRequest

DECENT, ABUSED = "decent", "abused"
QUEUED_BYTES_MAX = 64 * MIB
REQUEST_BYTES_MAX = 48 * MIB
SLOWDOWN_MAX = 250  # of a round trip of some milliseconds: only starvation fails, the figures tell the rest
BACKLOG = {"socket.listen.backlog.size": "1500"}  # else the kernel keeps those waiting who knock too fast
SLOWDOWN_FLOOR_MS = 4  # ratios of less than this are noise


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    settings = {
        "auto.create.topics.enable": "false",
        "queued.max.request.bytes": str(QUEUED_BYTES_MAX),
        "socket.request.max.bytes": str(REQUEST_BYTES_MAX),
        "max.connections.per.ip": "1500",
        **BACKLOG,
    }
    found = Ground(tmp_path_factory.mktemp("broker"), settings)
    with found.peer() as peer:
        peer.create_topic(DECENT)
        peer.create_topic(ABUSED, max_message_bytes=str(8 * MIB))
        value = b"x" * MIB
        for _ in range(60):
            assert peer.produce(ABUSED, batch_of([value]), acks=1)[0] == 0
    found.check_serves(DECENT)
    yield found
    found.stop()


class Measured:
    """Memory and the bystander's slowdown during an attack."""

    def __init__(self) -> None:
        self.memory_mib = 0.0  # above what was used before
        self.peace_ms = 0.0
        self.attacked_ms = 0.0
        self.round_trips = 0

    def check(self, attack: str, memory_mib_max: float, slowdown_max: float = SLOWDOWN_MAX) -> None:
        figures.note(
            f"{attack:<45} {self.memory_mib:6.1f} MiB more at the peak, round trip of another client "
            f"{self.attacked_ms:6.2f} ms instead of {self.peace_ms:.2f} ms ({self.round_trips} of them)"
        )
        assert self.memory_mib < memory_mib_max
        assert self.round_trips >= 10
        assert self.attacked_ms < slowdown_max * max(self.peace_ms, SLOWDOWN_FLOOR_MS)


@contextlib.contextmanager
def measured(ground: Ground) -> Iterator[Measured]:
    """Runs the block beside a decent client, for two seconds at least."""
    found = Measured()
    found.peace_ms = median_in_peace_ms(ground, DECENT)
    ground.forget_memory_peak()
    before = ground.memory_mib()
    with Bystander(ground, DECENT) as bystander:
        began = time.monotonic()
        yield found
        time.sleep(max(0.0, began + 2 - time.monotonic()))
    found.memory_mib = ground.memory_peak_mib() - before
    found.attacked_ms = bystander.median_ms
    found.round_trips = len(bystander.round_trips_ms)


def push(peer: Peer, data: bytes, seconds: float) -> int:
    """Sends `data` over and over until the broker takes no more for a while; the bytes that it took."""
    peer.socket.setblocking(False)
    taken = 0
    unsent = memoryview(data)
    last = time.monotonic()
    end = last + seconds
    while (now := time.monotonic()) < end and now - last < 0.7:
        try:
            count = peer.socket.send(unsent)
            taken += count
            unsent = unsent[count:] if count < len(unsent) else memoryview(data)
            last = now
        except BlockingIOError:
            time.sleep(0.005)
    return taken


def test_a_producer_that_never_reads_its_answers(ground: Ground) -> None:
    request = request_bytes(apis.PRODUCE, 8, produce_request(ABUSED, batch_of([b"x" * 100])))
    with contextlib.ExitStack() as stack, measured(ground) as found:
        peers = [stack.enter_context(ground.peer(receive_buffer=4096)) for _ in range(4)]
        threads = [threading.Thread(target=push, args=(peer, request * 100, 4)) for peer in peers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found.check("a producer that never reads", memory_mib_max=30)


def test_consumers_that_never_read_fifty_megabytes(ground: Ground) -> None:
    request = request_bytes(apis.FETCH, 11, fetch_request(ABUSED, 0, bytes_max=50 * MIB))
    with contextlib.ExitStack() as stack, measured(ground) as found:
        for _ in range(40):
            peer = stack.enter_context(ground.peer(receive_buffer=4096))
            peer.send(request * 20)
        time.sleep(2)
    found.check("40 consumers that never read 50 MiB", memory_mib_max=30)  # the answers stay in their files


def test_a_consumer_that_reads_fifty_megabytes_slowly_gets_them_all(ground: Ground) -> None:
    with ground.peer() as peer:
        peer.send(request_bytes(apis.FETCH, 11, fetch_request(ABUSED, 0, bytes_max=50 * MIB)))
        size = struct.unpack(">i", peer.receive(4))[0]
        left = size
        while left:
            left -= len(peer.receive(min(left, 4 * MIB)))
            time.sleep(0.02)
    assert size > 49 * MIB


def test_readers_of_large_metadata_that_never_read_it(ground: Ground) -> None:
    """Twenty bytes that ask for a hundred kilobytes, thousands of times."""
    with ground.peer(timeout_seconds=60) as peer:
        for number in range(5):
            peer.create_topic(f"wide-{number}", partitions=200)
    request = request_bytes(apis.METADATA, 1, MetadataRequest(topics=None))
    with contextlib.ExitStack() as stack, measured(ground) as found:
        for _ in range(50):
            peer = stack.enter_context(ground.peer(receive_buffer=4096))
            with contextlib.suppress(Closed, BlockingIOError):
                push(peer, request * 200, 0.05)
        time.sleep(1)
    found.check("50 readers of large metadata that never read", memory_mib_max=QUEUED_BYTES_MAX / MIB + 60)


def test_two_hundred_connections_with_a_byte_per_second(ground: Ground) -> None:
    """Here ten bytes each, faster: what counts is that an announced length alone costs nothing."""
    opening = struct.pack(">i", REQUEST_BYTES_MAX) + struct.pack(">hhih", 0, 8, 1, -1)
    with contextlib.ExitStack() as stack, measured(ground) as found:
        peers = [stack.enter_context(ground.peer()) for _ in range(200)]
        for peer in peers:
            peer.send(opening)
        for _ in range(10):
            for peer in peers:
                peer.send(b"x")
            time.sleep(0.1)
    found.check("200 connections, a byte at a time", memory_mib_max=10)


def test_a_thousand_connections_with_half_a_megabyte_each(ground: Ground) -> None:
    """Eight times what may be queued: the slowest are dropped, each with a line that says why."""
    half = struct.pack(">i", MIB) + struct.pack(">hhih", 0, 8, 1, -1) + bytes(MIB // 2)
    dropped_min = 1000 - 2 * QUEUED_BYTES_MAX // (MIB // 2)
    ground.new_log_lines()
    with contextlib.ExitStack() as stack, measured(ground) as found:
        peers = [stack.enter_context(ground.peer()) for _ in range(1000)]
        for peer in peers:
            with contextlib.suppress(Closed):
                peer.send(half)
        dropped: list[str] = []
        deadline = time.monotonic() + 30
        while len(dropped) < dropped_min and time.monotonic() < deadline:
            time.sleep(0.05)
            dropped += [line for line in ground.new_log_lines() if "queued.max.request.bytes" in line]
    found.check("1,000 connections with half a MiB each", memory_mib_max=QUEUED_BYTES_MAX / MIB * 1.5 + 40)
    assert len(dropped) >= dropped_min
    ground.check_serves(DECENT)


def test_many_slow_connections_cannot_shield_a_few_that_hold_much(ground: Ground) -> None:
    """Those who hold next to nothing are not sacrificed for those who hold the most."""
    ground.new_log_lines()
    with contextlib.ExitStack() as stack, measured(ground) as found:
        small = [stack.enter_context(ground.peer()) for _ in range(300)]
        for peer in small:
            peer.send(struct.pack(">i", 1000) + b"\0")
        large = [stack.enter_context(ground.peer()) for _ in range(8)]
        for peer in large:
            with contextlib.suppress(Closed):
                peer.send(struct.pack(">i", REQUEST_BYTES_MAX) + bytes(20 * MIB))
        dropped: set[str] = set()

        def some_are_dropped() -> bool:
            dropped.update(line.split(" on ")[0] for line in ground.new_log_lines() if "queued.max" in line)
            return bool(dropped)

        assert eventually(some_are_dropped, within_s=30)
        time.sleep(0.3)  # for more of them
        some_are_dropped()
        assert not any(line.endswith(f":{peer.port}") for line in dropped for peer in small)
    found.check("300 small and slow, 8 that hold 20 MiB", memory_mib_max=QUEUED_BYTES_MAX / MIB * 2 + 40)


def test_thousands_of_pipelined_requests_are_answered_in_order(ground: Ground) -> None:
    count = 20_000
    requests = [
        request_bytes(apis.API_VERSIONS, 0, ApiVersionsRequest(), correlation_id=number)
        for number in range(count)
    ]
    with measured(ground) as found, ground.peer() as peer:
        sender = threading.Thread(target=peer.send, args=(b"".join(requests),))
        sender.start()
        for number in range(count):
            assert struct.unpack_from(">i", peer.frame())[0] == number
        sender.join()
    found.check("20,000 pipelined requests", memory_mib_max=30)


def test_floods_of_small_requests_from_many_connections(ground: Ground) -> None:
    with measured(ground) as found:
        subprocess.run([sys.executable, flood.__file__, ground.address, "3"], check=True)
    found.check("40 floods of small requests", memory_mib_max=30, slowdown_max=50)


def test_connections_beyond_the_limit_of_an_address_are_refused(tmp_path: Path) -> None:
    limited = Ground(tmp_path, {"max.connections.per.ip": "50", **BACKLOG})
    try:
        with limited.peer() as decent:
            decent.create_topic(DECENT)
            limited.new_log_lines()
            kept: list[Peer] = []
            refused = 0
            for _ in range(300):
                peer = limited.peer()
                peer.socket.settimeout(0.001)
                kept.append(peer)
            limited.forget_memory_peak()
            before = limited.memory_mib()
            assert decent.produce(DECENT, batch_of([b"still"]), acks=-1)[0] == 0
            for peer in kept:
                with contextlib.suppress(TimeoutError):
                    refused += peer.is_closed_by_broker()
            assert refused == 251  # the decent one counts too
            assert limited.memory_peak_mib() - before < 5
            lines = [line for line in limited.new_log_lines() if "max.connections.per.ip" in line]
            assert lines
            for peer in kept:
                peer.close()
            assert eventually(lambda: _serves(limited))  # once the broker has noticed that they left
    finally:
        limited.stop()


def _serves(ground: Ground) -> bool:
    try:
        ground.check_serves(DECENT)
    except Closed:
        return False
    return True
