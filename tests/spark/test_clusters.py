"""The same job, unchanged, on a standalone cluster (a master and two workers) and through Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from compat.broker import unique_name
from ottla.client import read
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.testing import BrokerProcess
from spark.clusters import connect_server, environment, standalone_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_JOB = Path(__file__).parent / "faults" / "copy_job.py"
_COUNT = 500


@pytest.fixture
def topics(broker: BrokerProcess, admin: Admin) -> tuple[str, str]:
    source, sink = unique_name("source"), unique_name("sink")
    for topic in (source, sink):
        admin.create_topic(topic, partitions=3, replication_factor=1)
    with Producer(broker.bootstrap) as producer:
        for number in range(_COUNT):
            producer.send(source, b"%d" % number, key=b"%d" % number)
    return source, sink


def test_a_standalone_cluster_copies_a_topic_exactly_once(
    broker: BrokerProcess, topics: tuple[str, str], tmp_path: Path
) -> None:
    with standalone_cluster(tmp_path) as cluster:
        _copy(broker, topics, tmp_path, cluster.address)
        assert cluster.executors() == {1, 2}


def test_spark_connect_copies_a_topic_exactly_once(
    broker: BrokerProcess, topics: tuple[str, str], tmp_path: Path
) -> None:
    with connect_server(tmp_path) as address:
        _copy(broker, topics, tmp_path, address)


def _copy(broker: BrokerProcess, topics: tuple[str, str], place: Path, master: str) -> None:
    command = [sys.executable, str(_JOB), broker.bootstrap, *topics, str(place / "checkpoint"), master]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500
    )
    assert done.returncode == 0, done.stdout[-4000:]
    committed = read(broker.bootstrap, topics[1], **{"isolation.level": "read_committed"})
    assert Counter(each.value for each in committed) == Counter(b"%d" % number for number in range(_COUNT))
