"""One key, one partition: whichever client writes it."""

from __future__ import annotations

import base64
import json
import random
import subprocess

import pytest

from compat.broker import CreateTopic
from interop.builds import java_command
from ottla.client.producer import Producer
from ottla.client.reading import read

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_keys_land_where_the_java_client_puts_them(bootstrap: str, create_topic: CreateTopic) -> None:
    topic = create_topic("keys", partitions=11, configs={})
    chance = random.Random(7)
    keys = [b"", *(chance.randbytes(chance.randrange(1, 50)) for _ in range(300))]
    request = {
        "bootstrap": bootstrap,
        "topic": topic,
        "partition": None,
        "acks": -1,
        "idempotent": True,
        "codec": "none",
        "many_requests": False,
    }
    records = [
        {"key": base64.b64encode(key).decode(), "value": None, "headers": [], "timestamp_ms": None}
        for key in keys
    ]
    subprocess.run(
        [*java_command(), "RecordDriver", "produce"],
        input="\n".join(json.dumps(line) for line in (request, *records)),
        text=True,
        check=True,
        timeout=120,
        capture_output=True,
    )
    with read(bootstrap, topic) as reading:
        theirs = {record.key: record.partition for record in reading}
    with Producer(bootstrap) as producer:
        futures = {key: producer.send(topic, b"", key) for key in keys}
        ours = {key: future.result(30).partition for key, future in futures.items()}
    assert len(theirs) == len(set(keys))
    assert ours == theirs
