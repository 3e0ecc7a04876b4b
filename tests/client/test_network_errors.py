"""What a user is told when the address is wrong, the server is of another kind, or no answer comes."""

from __future__ import annotations

import http.server
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from in_process import running_broker
from ottla.client import diagnosis
from ottla.client.admin import Admin
from ottla.client.errors import (
    AdvertisedUnreachable,
    BrokerUnreachable,
    ConnectionFailed,
    TimedOut,
    Unsupported,
    WrongServer,
)
from ottla.protocol.apis import API_VERSIONS
from ottla.protocol.headers import decode_request_header, encode_response
from ottla.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse


@contextmanager
def server(handle: Callable[[socket.socket], None]) -> Iterator[str]:
    """Calls `handle` with each connection, one after the other, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                try:
                    handle(peer)
                except OSError:
                    continue

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


def test_a_refused_connection_says_how_to_start_a_broker() -> None:
    with (
        Admin("127.0.0.1:1") as admin,
        pytest.raises(BrokerUnreachable, match=r"connection refused.*`ottla up`"),
    ):
        admin.cluster()


def test_an_unknown_host_is_named() -> None:
    with Admin("no-such-host.invalid:9092") as admin, pytest.raises(BrokerUnreachable, match="no such host"):
        admin.cluster()


def test_the_next_bootstrap_address_is_tried(bootstrap: str) -> None:
    with Admin(f"127.0.0.1:1,{bootstrap}") as admin:
        assert admin.cluster().brokers


def test_a_web_server_is_recognised() -> None:
    class Quiet(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=web.serve_forever)
    thread.start()
    try:
        address = f"127.0.0.1:{web.server_port}"
        with Admin(address, request_timeout_ms=500) as admin, pytest.raises(WrongServer, match="HTTP"):
            admin.cluster()
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def test_a_tls_server_is_recognised_by_its_alert() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def handshake(peer: socket.socket) -> None:
        context.wrap_socket(peer, server_side=True)

    with server(handshake) as address, Admin(address) as admin, pytest.raises(WrongServer, match="TLS"):
        admin.cluster()


def test_a_zookeeper_that_hangs_up_is_recognised_by_asking_it() -> None:
    def zookeeper(peer: socket.socket) -> None:
        if peer.recv(1024).startswith(b"srvr"):
            peer.sendall(b"Zookeeper version: 3.9.4\nLatency min/avg/max: 0/0/0\n")

    with server(zookeeper) as address, Admin(address) as admin, pytest.raises(WrongServer, match="ZooKeeper"):
        admin.cluster()


def test_a_server_that_hangs_up_without_a_word_is_no_broker() -> None:
    with (
        server(lambda peer: None) as address,
        Admin(address) as admin,
        pytest.raises(BrokerUnreachable, match="closes them without an answer"),
    ):
        admin.cluster()


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9\r\n", b"\xff" * 64, b"\0\0\0\x04abcd", b"\0\0\0\x06abcdef"]
)
def test_noise_is_no_broker(answer: bytes) -> None:
    with (
        server(lambda peer: peer.sendall(answer)) as address,
        Admin(address) as admin,
        pytest.raises(ConnectionFailed),
    ):
        admin.cluster()


def test_a_silent_server_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_PROBE_SECONDS", 0.1)  # each kind of server is given that to show itself

    def wait(peer: socket.socket) -> None:
        while peer.recv(1024):
            pass

    with server(wait) as address:
        with Admin(address, socket_connection_setup_timeout_ms=300) as admin, pytest.raises(TimedOut):
            admin.cluster()
        with Admin(address, request_timeout_ms=300) as admin, pytest.raises(TimedOut):
            admin.cluster()


def test_an_advertised_address_that_cannot_be_reached_names_both(tmp_path: Path) -> None:
    settings = {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with running_broker(tmp_path, settings) as broker, Admin(broker.bootstrap) as admin:
        with pytest.raises(AdvertisedUnreachable) as caught:
            admin.create_topic("topic")
        text = str(caught.value)
        assert broker.bootstrap in text
        assert "127.0.0.1:1" in text
        assert "advertised.listeners" in text


def answers_of_an_old_broker(peer: socket.socket) -> None:
    """Speaks ApiVersions 0 only, and of other APIs nothing this client knows."""
    while head := peer.recv(4, socket.MSG_WAITALL):
        frame = peer.recv(int.from_bytes(head), socket.MSG_WAITALL)
        header, _ = decode_request_header(frame)
        if header.api_version > 0:
            answer = ApiVersionsResponse(error_code=35)
        else:
            answer = ApiVersionsResponse(api_keys=[ApiVersion(18, 0, 0), ApiVersion(1, 0, 2)])
        chunks = encode_response(API_VERSIONS, 0, header.correlation_id, answer)
        peer.sendall(b"".join(chunks))  # type: ignore[arg-type]


def test_an_old_broker_is_asked_in_its_own_version_and_told_apart() -> None:
    with server(answers_of_an_old_broker) as address, Admin(address) as admin:
        assert [(each.key, each.last) for each in admin.broker_versions().apis] == [(1, 2), (18, 0)]
        with pytest.raises(Unsupported, match="does not offer Metadata"):
            admin.cluster()
