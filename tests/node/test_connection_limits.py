"""The limits of connections, also when they change while the broker runs."""

from __future__ import annotations

import socket
from pathlib import Path

from in_process import running_broker
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.server.accepting import Admission, SocketOptions
from wire import WireClient


def test_a_changed_limit_holds_for_the_next_connection(tmp_path: Path) -> None:
    with running_broker(tmp_path) as running:
        client = WireClient(running.bootstrap)
        config = AlterableConfig("max.connections.per.ip", 0, "3")
        resource = AlterConfigsResource(4, "1", [config])
        (answer,) = client.call(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert (answer.error_code, answer.error_message) == (0, None)
        host, _, port = running.bootstrap.rpartition(":")
        peers = [socket.create_connection((host, int(port)), timeout=5) for _ in range(4)]
        refused = [peer for peer in peers if is_closed(peer)]
        assert len(refused) == 2  # the client and two peers make three
        for peer in peers:
            peer.close()
        client.close()


def test_new_connections_wait_for_their_turn_by_the_rate() -> None:
    admission = Admission(SocketOptions(connections_per_second_max=10))
    now_ms = 5_000
    for _ in range(10):  # a second's worth at once
        assert admission.wait_ms(now_ms) == 0
        admission.entered("10.0.0.7")
    assert admission.wait_ms(now_ms) == 100
    assert admission.wait_ms(now_ms + 60) == 40
    assert admission.wait_ms(now_ms + 100) == 0
    admission.entered("10.0.0.7")
    assert admission.wait_ms(now_ms + 100) == 100
    assert admission.wait_ms(now_ms + 60_000) == 0
    admission.options.connections_per_second_max = 0
    assert admission.wait_ms(now_ms + 60_000) > 0, "nobody"
    admission.options.connections_per_second_max = None
    assert admission.wait_ms(now_ms + 60_000) == 0


def test_all_who_wait_get_in(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"max.connection.creation.rate": "20"}) as running:
        clients = [WireClient(running.bootstrap) for _ in range(30)]
        for client in clients:
            assert client.call(ApiVersionsRequest(), 0).error_code == 0
            client.close()


def is_closed(peer: socket.socket) -> bool:
    peer.settimeout(0.5)
    try:
        return peer.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True
