"""Whatever comes in on the ZooKeeper port: others are served on, and memory stays bounded."""

from __future__ import annotations

import errno
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.client.zookeeper import ConnectionLost, ZooKeeperClient
from ottla.protocol.zookeeper.headers import ConnectRequest, encode_connect_request, encode_request, frame
from ottla.protocol.zookeeper.jute import encode
from ottla.protocol.zookeeper.operations import REQUESTS, OpCode
from ottla.protocol.zookeeper.records import PathRequest, WatchedRequest
from ottla.testing import CoordinationProcess

MIB = 1024 * 1024
HELLO = encode_connect_request(ConnectRequest(0, 0, 10_000, 0, bytes(16)))
LENGTH = struct.Struct(">i")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinationProcess]:
    with CoordinationProcess(tmp_path_factory.mktemp("coordination"), {"maxClientCnxns": "0"}) as process:
        yield process
        assert "Traceback" not in process.output(), process.output()[-4000:]


@pytest.fixture
def bystander(service: CoordinationProcess) -> Iterator[ZooKeeperClient]:
    """Somebody who wants to be served meanwhile."""
    host, _, port = service.zookeeper.rpartition(":")
    with ZooKeeperClient(host, int(port), session_timeout_ms=40_000) as client:
        yield client
        assert client.exists("/") is not None


def connect(service: CoordinationProcess, *, hello: bool = True) -> socket.socket:
    host, _, port = service.zookeeper.rpartition(":")
    peer = socket.create_connection((host, int(port)), timeout=30)
    if hello:
        peer.sendall(HELLO)
        assert len(peer.recv(4096)) == 41
    return peer


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def is_closed_on(peer: socket.socket, data: bytes) -> bool:
    try:
        peer.sendall(data)
        return peer.recv(4096) == b""
    except ConnectionError:
        return True


def read_until_closed(peer: socket.socket) -> None:
    """Say no more, and take what comes, for as long as the connection's timeout at most."""
    try:
        peer.shutdown(socket.SHUT_WR)
    except OSError as error:  # the service has reset the connection: nothing is left to shut down
        if error.errno != errno.ENOTCONN:
            raise
        return
    try:
        while peer.recv(4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("seed", range(30))
def test_random_bytes(service: CoordinationProcess, bystander: ZooKeeperClient, seed: int) -> None:
    chance = random.Random(seed)
    with connect(service, hello=seed % 2 == 0) as peer:
        data = chance.randbytes(chance.choice([1, 3, 4, 40, 5000]))
        if chance.random() < 0.5:
            data = frame(data)
        try:
            peer.sendall(data)
        except ConnectionError:
            return
        read_until_closed(peer)


@pytest.mark.parametrize("seed", range(30))
def test_requests_with_bytes_changed(
    service: CoordinationProcess, bystander: ZooKeeperClient, seed: int
) -> None:
    chance = random.Random(seed)
    with connect(service) as peer:
        for number in range(20):
            operation = chance.choice([*REQUESTS, OpCode.MULTI, OpCode.MULTI_READ, OpCode.WHO_AM_I])
            body = bytearray(encode(PathRequest("/some/path")) + chance.randbytes(chance.randrange(60)))
            body[chance.randrange(len(body))] = chance.choice([0, 0x7F, 0x80, 0xFF])
            try:
                peer.sendall(encode_request(number, operation, bytes(body)))
            except ConnectionError:
                return
        read_until_closed(peer)


@pytest.mark.parametrize("length", [-1, -(2**31), MIB, 2**31 - 1])
@pytest.mark.parametrize("hello", [False, True])
def test_lengths_that_cannot_be(
    service: CoordinationProcess, bystander: ZooKeeperClient, length: int, hello: bool
) -> None:
    with connect(service, hello=hello) as peer:
        assert is_closed_on(peer, LENGTH.pack(length) + b"x" * 100)


@pytest.mark.parametrize("operation", [OpCode.SET_WATCHES, OpCode.SET_ACL, OpCode.CREATE])
def test_huge_counts(service: CoordinationProcess, bystander: ZooKeeperClient, operation: OpCode) -> None:
    counts = LENGTH.pack(2**31 - 1) * 10
    with connect(service) as peer:
        assert is_closed_on(peer, encode_request(1, operation, counts))
    with connect(service) as peer:
        assert is_closed_on(peer, encode_request(1, operation, encode(PathRequest("/a")) + counts))


def test_deep_and_odd_paths_are_refused_or_kept(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    for path in ("/" + "a/" * 100_000 + "b", "/" * 1000, "/a\0b", "/\ud7ff\ue000", "/.", "/a/..", "nothing"):
        with connect(service) as peer:
            for operation in (OpCode.EXISTS, OpCode.GET_CHILDREN2, OpCode.ADD_WATCH):
                peer.sendall(encode_request(1, operation, encode(PathRequest(path)) + bytes(4)))
                assert len(peer.recv(4096)) >= 20


def test_a_request_before_the_handshake_is_not_served(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    with connect(service, hello=False) as peer:
        assert is_closed_on(peer, encode_request(1, OpCode.GET_DATA, encode(WatchedRequest("/", False))))


def test_a_session_of_another_service_is_sent_away(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    with connect(service, hello=False) as peer:
        ahead = ConnectRequest(0, 2**62, 10_000, 0, bytes(16))
        assert is_closed_on(peer, encode_connect_request(ahead))


def test_a_client_that_asks_and_never_reads_costs_bounded_memory(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    bystander.create("/large", bytes(500_000))
    before = resident_bytes(service.pid)
    question = encode_request(1, OpCode.GET_DATA, encode(WatchedRequest("/large", False)))
    peers = [connect(service) for _ in range(10)]
    for peer in peers:
        peer.setblocking(False)
        try:
            for _ in range(100):
                peer.send(question * 50)
        except BlockingIOError:
            pass
        assert bystander.exists("/large") is not None
    grown = resident_bytes(service.pid) - before
    assert grown < 100 * MIB, f"{grown // MIB} MiB for clients that do not read"
    for peer in peers:
        peer.close()


def test_a_client_that_does_not_read_its_events_is_closed(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    bystander.create("/busy")
    host, _, port = service.zookeeper.rpartition(":")
    deaf = ZooKeeperClient(host, int(port), session_timeout_ms=40_000)
    deaf._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.watch("/busy")
    for _ in range(30):
        batch = [encode_request(0, OpCode.SET_DATA, b"\0\0\0\5/busy\0\0\0\0\xff\xff\xff\xff")] * 500
        with connect(service) as peer:
            peer.sendall(b"".join(batch))
            left = 500 * 88
            while left:
                left -= len(peer.recv(65_536))
        if "of watch events wait for it to read them" in service.output():
            break
    assert "of watch events wait for it to read them" in service.output()
    with pytest.raises(ConnectionLost):
        for _ in deaf.events(30):
            pass
    deaf._socket.close()


def test_a_thousand_connections_that_say_nothing_are_no_burden(
    service: CoordinationProcess, bystander: ZooKeeperClient
) -> None:
    before = resident_bytes(service.pid)
    peers = []
    for number in range(1_000):
        peers.append(connect(service, hello=False))
        if number % 25 == 0:  # the service has let them in; the kernel keeps those waiting who knock too fast
            assert bystander.exists("/") is not None
    assert bystander.exists("/") is not None
    assert resident_bytes(service.pid) - before < 20 * MIB
    for peer in peers:
        peer.close()
