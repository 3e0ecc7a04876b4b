"""Avro in a registry's framing: a real registry, Confluent's serializer on one side and ours on the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compat.broker import CreateTopic
from interop.apache_kafka import free_port
from interop.builds import confluent_avro_packages, registry_command
from ottla.client import Producer, Topic, read
from ottla.client.errors import ClientError
from ottla.client.typed import avro

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

_START_SECONDS_MAX = 300
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "number", "type": "long"}, {"name": "text", "type": "string"}],
}
GROWN = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "paid", "type": "boolean", "default": False}]}


@dataclass
class Order:
    number: int
    text: str


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("registry"), free_port()
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(registry_command(port), stdout=output, stderr=subprocess.STDOUT)
    address = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    try:
        deadline = time.monotonic() + _START_SECONDS_MAX
        while not _answers(address):
            assert server.poll() is None, (folder / "output").read_text()[-4000:]
            assert time.monotonic() < deadline, (folder / "output").read_text()[-4000:]
            time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(60)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/subjects", timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def confluent(role: str, bootstrap: str, registry: str, topic: str, count: int) -> list[dict[str, object]]:
    driver = Path(__file__).parent / "confluent_avro" / "driver.py"
    done = subprocess.run(
        [sys.executable, driver, role, bootstrap, registry, topic, str(count)],
        env={**os.environ, "PYTHONPATH": str(confluent_avro_packages())},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_we_read_what_confluents_serializer_writes(
    bootstrap: str, registry: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(1)
    confluent("write", bootstrap, registry, topic, 20)
    expected = [Order(number, "theirs") for number in range(20)]
    typed = Topic(topic, value=avro(SCHEMA, kind=Order, registry=registry))
    assert [record.value for record in read(bootstrap, typed)] == expected
    by_the_writers = Topic(topic, value=avro(registry=registry))
    assert [Order(**record.value) for record in read(bootstrap, by_the_writers)] == expected
    grown = Topic(
        topic, value=avro(GROWN, registry=registry)
    )  # a reader's schema that is ahead of the writer's
    assert {record.value["paid"] for record in read(bootstrap, grown)} == {False}


def test_confluents_deserializer_reads_what_we_write(
    bootstrap: str, registry: str, create_topic: CreateTopic
) -> None:
    topic = create_topic(1)
    typed = Topic(topic, value=avro(SCHEMA, kind=Order, registry=registry))
    with Producer(bootstrap) as producer:
        for number in range(20):
            producer.send(typed, Order(number, "ours"))
    found = confluent("read", bootstrap, registry, topic, 20)
    assert found == [{"number": number, "text": "ours"} for number in range(20)]


def test_what_the_registry_refuses_is_told(bootstrap: str, registry: str, create_topic: CreateTopic) -> None:
    unknown = Topic(create_topic(1), value=avro(SCHEMA, registry=registry, register=False))
    with Producer(bootstrap) as producer, pytest.raises(ClientError, match="404"):
        producer.send(unknown, {"number": 1, "text": ""})
