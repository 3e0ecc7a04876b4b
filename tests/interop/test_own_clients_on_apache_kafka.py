"""The tests of our own clients once more, against Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from client.conftest import QUICK_GROUPS
from interop.apache_kafka import apache_kafka
from interop.apache_servers import Kafka39
from ottla.testing import CoordinationProcess

SUITES = (
    "admin",
    "admin_groups",
    "aio",
    "producer",
    "consumer",
    "worker_pool",
    "aio_worker_pool",
    "columns",
    "send_arrow",
    "partitioners",
    "plugins",
    "groups",
    "commits",
    "long_work",
    "server_groups",
    "settings",
    "delivery_guarantees",
    "transactions",
    "patterns/backlog",
    "patterns/half_messages",
    "patterns/outbox",
    "patterns/failures_pace_and_routes",
)

OLDER_SUITES = ("transactions", "producer", "groups", "commits", "long_work", "delivery_guarantees", "aio")

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def _file(suite: str) -> Path:
    path = Path(__file__).parent.parent / "client" / suite
    return path.with_name(f"test_{path.name}.py")


def run_suites(bootstrap: str, suites: Iterable[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, *(_file(suite) for suite in suites)],
        env={**os.environ, "OTTLA_TEST_BOOTSTRAP": bootstrap},
        capture_output=True,
        text=True,
        timeout=850,
    )
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]


def test_the_clients_do_the_same_with_apache_kafka(tmp_path: Path) -> None:
    with apache_kafka(tmp_path, QUICK_GROUPS) as bootstrap:
        run_suites(bootstrap, SUITES)


def test_the_clients_do_the_same_with_a_kafka_of_before(tmp_path: Path) -> None:
    """3.9, on ZooKeeper: transactions the older way, and no groups whose brokers assign."""
    with CoordinationProcess() as service:
        kafka = Kafka39(tmp_path / "kafka", service.zookeeper, tmp_path / "logs", QUICK_GROUPS)
        with kafka:
            run_suites(kafka.address, OLDER_SUITES)
