"""What kcat asks beside reading and writing: metadata, offsets by time, reading from either end."""

from __future__ import annotations

import json

import pytest

from compat.broker import CreateTopic
from compat.cases import QUICK
from compat.clients.confluent import Confluent
from compat.clients.kcat import installed, run
from compat.record import Record

pytestmark = pytest.mark.skipif(not installed(), reason="kcat is not installed")

_START_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def topic(bootstrap: str, create_topic: CreateTopic) -> str:
    name = create_topic("queried", partitions=2, configs={"retention.ms": "-1"})
    records = [Record("timed", value=b"%d" % i, timestamp_ms=_START_MS + 1000 * i) for i in range(10)]
    Confluent().write(bootstrap, name, 0, records, QUICK)
    return name


def test_metadata_lists_brokers_topics_and_partitions(bootstrap: str, topic: str) -> None:
    listed = json.loads(run(["-L", "-J", "-b", bootstrap]))
    [found] = [entry for entry in listed["topics"] if entry["topic"] == topic]
    [broker] = listed["brokers"]
    assert broker["name"] == bootstrap
    assert [(p["partition"], p["leader"]) for p in found["partitions"]] == [
        (0, broker["id"]),
        (1, broker["id"]),
    ]
    assert all(p["isrs"] == p["replicas"] == [{"id": broker["id"]}] for p in found["partitions"])


def test_offset_of_a_time_is_queried(bootstrap: str, topic: str) -> None:
    out = run(["-Q", "-b", bootstrap, "-t", f"{topic}:0:{_START_MS + 2500}"]).decode()
    assert out.split() == [topic, "[0]", "offset", "3"]


@pytest.mark.parametrize(
    ("start", "values"),
    [
        ("beginning", "0123456789"),
        ("7", "789"),
        ("-4", "6789"),
        (f"s@{_START_MS + 7001}", "89"),
    ],
)
def test_reading_starts_where_asked_and_ends_at_the_end(
    bootstrap: str, topic: str, start: str, values: str
) -> None:
    out = run(["-C", "-q", "-e", "-b", bootstrap, "-t", topic, "-p", "0", "-o", start, "-f", "%s"])
    assert out.decode() == values
