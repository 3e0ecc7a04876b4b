"""The HTTP of those who watch: what it answers, and what it does not let anybody do."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from calls import append, at, batch_of, commit_request, create_topic, fetch, produce_request
from in_process import InProcessBroker, running_broker
from ottla.model.limits import HTTP_CONNECTIONS_MAX, HTTP_REQUEST_BYTES_MAX
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest
from wire import WireClient

DEADLINE_SECONDS = 30


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with running_broker(tmp_path, {"ottla.http.port": "0"}) as running:
        yield running


def address(broker: InProcessBroker) -> tuple[str, int]:
    assert broker.broker.http is not None
    return broker.broker.http.host, broker.broker.http.port


def get(broker: InProcessBroker, path: str, method: str = "GET") -> tuple[int, str]:
    connection = HTTPConnection(*address(broker), timeout=DEADLINE_SECONDS)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def raw(broker: InProcessBroker, *pieces: bytes) -> bytes:
    """What comes back until the broker closes."""
    with socket.create_connection(address(broker), timeout=DEADLINE_SECONDS) as sock:
        answer = b""
        try:
            for piece in pieces:
                sock.sendall(piece)
            while data := sock.recv(65_536):
                answer += data
        except ConnectionError:
            pass
        return answer


def samples(page: str) -> dict[str, float]:
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_metrics_count_what_clients_did(broker: InProcessBroker) -> None:
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"one")
        append(client, topic, b"two")
    status, page = get(broker, "/metrics")
    assert status == 200
    values = samples(page)
    labels = f'{{topic="{topic}",partition="0"}}'
    assert values[f"kafka_topic_partition_current_offset{labels}"] == 2
    assert values[f"kafka_topic_partition_oldest_offset{labels}"] == 0
    assert values[f"kafka_topic_partition_leader{labels}"] == 1
    assert values[f"kafka_topic_partition_under_replicated_partition{labels}"] == 0
    assert values['kafka_network_requestmetrics_requests_total{request="Produce"}'] == 2
    assert values["kafka_server_replicamanager_partitioncount"] == 1
    assert values["kafka_brokers"] == 1
    assert any(each.startswith("kafka_broker_info{") and broker.bootstrap in each for each in values)
    assert values[f'kafka_server_brokertopicmetrics_messagesin_total{{topic="{topic}"}}'] == 2
    assert values[f'kafka_server_brokertopicmetrics_bytesin_total{{topic="{topic}"}}'] > 120
    assert values[f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{topic}"}}'] == 0
    assert values["ottla_log_sync_round_seconds_count"] >= 1


def test_metrics_tell_how_far_groups_are(broker: InProcessBroker) -> None:
    group = 'a "quoted" group'
    with WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        append(client, topic, b"one", b"two", b"three")
        fetch(client, topic, at(0))
        client.call(FindCoordinatorRequest(coordinator_keys=[group]), 4)
        assert client.call(commit_request(group, topic, 1), 9).topics[0].partitions[0].error_code == 0
    values = samples(get(broker, "/metrics")[1])
    labels = f'{{consumergroup="a \\"quoted\\" group",topic="{topic}",partition="0"}}'
    assert values[f"kafka_consumergroup_current_offset{labels}"] == 1
    assert values[f"kafka_consumergroup_lag{labels}"] == 2
    whole = f'{{consumergroup="a \\"quoted\\" group",topic="{topic}"}}'
    assert values[f"kafka_consumergroup_current_offset_sum{whole}"] == 1
    assert values[f"kafka_consumergroup_lag_sum{whole}"] == 2
    assert values['kafka_consumergroup_members{consumergroup="a \\"quoted\\" group"}'] == 0
    assert values[f'kafka_server_brokertopicmetrics_bytesout_total{{topic="{topic}"}}'] > 60


def test_every_family_is_declared_once_and_its_samples_stand_together(broker: InProcessBroker) -> None:
    with WireClient(broker.bootstrap) as client:
        for _ in range(3):
            create_topic(client)
    _, page = get(broker, "/metrics")
    families = [line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    current = ""
    for line in page.splitlines():
        if line.startswith("# TYPE"):
            current = line.split()[2]
        elif not line.startswith("#"):
            assert line.startswith(current), line


def test_healthz_says_what_is_wrong_and_goes_on_answering(broker: InProcessBroker) -> None:
    assert json.loads(get(broker, "/healthz")[1]) == {"status": "ok", "problems": []}
    broker.on_owner(lambda: broker.broker.health.add("cleaner", lambda: "it died; restart the broker"))
    status, body = get(broker, "/healthz")
    assert status == 200
    assert json.loads(body) == {
        "status": "degraded",
        "problems": [{"check": "cleaner", "text": "it died; restart the broker"}],
    }
    assert samples(get(broker, "/metrics")[1])['ottla_health_problem{check="cleaner"}'] == 1
    assert get(broker, "/readyz") == (200, "ready\n")


def test_what_is_no_page_is_refused(broker: InProcessBroker) -> None:
    status, body = get(broker, "/")
    assert status == 404
    assert "/metrics" in body
    assert get(broker, "/metrics?x=1")[0] == 200
    assert get(broker, "/metrics", "POST")[0] == 405
    assert get(broker, "/metrics", "HEAD") == (200, "")


@pytest.mark.parametrize(
    "head", [b"", b"GET", b"GET /", b"GET metrics HTTP/1.1", b"GET / HTTP/2", b"\xff\x00 / HTTP/1.1 x"]
)
def test_what_is_no_http_gets_400(broker: InProcessBroker, head: bytes) -> None:
    assert raw(broker, head + b"\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_request_may_come_byte_by_byte(broker: InProcessBroker) -> None:
    request = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    assert raw(broker, *(request[i : i + 1] for i in range(len(request)))).endswith(b"ready\n")


def test_a_head_without_end_is_cut_off(broker: InProcessBroker) -> None:
    flood = [b"GET / HTTP/1.1\r\n", *(b"X: " + b"x" * 1000 + b"\r\n" for _ in range(20))]
    assert sum(map(len, flood)) > HTTP_REQUEST_BYTES_MAX
    assert raw(broker, *flood) == b""
    assert get(broker, "/readyz")[0] == 200


def test_requests_behind_the_first_are_not_answered(broker: InProcessBroker) -> None:
    answer = raw(broker, b"GET /readyz HTTP/1.1\r\n\r\n" * 3)
    assert answer.count(b"HTTP/1.1 200") == 1


def test_watchers_that_ask_nothing_are_few_and_clients_are_served(broker: InProcessBroker) -> None:
    idle = [socket.create_connection(address(broker)) for _ in range(HTTP_CONNECTIONS_MAX)]
    try:
        assert raw(broker, b"GET /readyz HTTP/1.1\r\n\r\n") == b""
        with WireClient(broker.bootstrap) as client:
            topic = create_topic(client)
            client.send(produce_request(topic, batch_of(b"x")), 12)
            assert client.receive().responses[0].partition_responses[0].error_code == 0
    finally:
        for sock in idle:
            sock.close()


def test_a_port_that_was_asked_for_and_is_taken_ends_the_start(tmp_path: Path) -> None:
    from ottla.node.failures import BrokerFailed

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(BrokerFailed, match=f"{port} for /metrics.*ottla.http.port"),
            running_broker(tmp_path, {"ottla.http.port": str(port)}),
        ):
            raise AssertionError
