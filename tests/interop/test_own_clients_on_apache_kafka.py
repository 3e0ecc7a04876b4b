"""The tests of our own clients once more, against Apache Kafka."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from client.conftest import QUICK_GROUPS
from interop.apache_kafka import apache_kafka

SUITES = (
    "admin",
    "admin_groups",
    "aio",
    "producer",
    "consumer",
    "worker_pool",
    "columns",
    "send_arrow",
    "partitioners",
    "plugins",
    "groups",
    "server_groups",
    "settings",
    "delivery_guarantees",
    "transactions",
)

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]


def test_the_clients_do_the_same_with_apache_kafka(tmp_path: Path) -> None:
    folder = Path(__file__).parent.parent / "client"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    with apache_kafka(tmp_path, QUICK_GROUPS) as bootstrap:
        run = subprocess.run(
            [*command, *(str(folder / f"test_{suite}.py") for suite in SUITES)],
            env={**os.environ, "OTTLA_TEST_BOOTSTRAP": bootstrap},
            capture_output=True,
            text=True,
            timeout=850,
        )
    assert run.returncode == 0, run.stdout[-10_000:] + run.stderr[-2_000:]
