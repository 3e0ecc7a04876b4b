"""The fixtures, as a user's own test suite meets them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
from ottla.client import Admin, Producer, read

seen = []

def test_a_topic_is_fresh(ottla_broker, ottla_topic):
    with Producer(ottla_broker.bootstrap) as producer:
        producer.send(ottla_topic, b"one")
    assert [record.value for record in read(ottla_broker.bootstrap, ottla_topic)] == [b"one"]
    seen.append(ottla_topic)

def test_it_is_gone_after_its_test(ottla_broker, ottla_topic):
    with Admin(ottla_broker.bootstrap) as admin:
        names = admin.topic_names()
    assert ottla_topic in names
    assert not set(seen) & set(names)

def test_topics_have_what_they_were_given(ottla_admin, ottla_new_topic):
    name = ottla_new_topic(partitions=3, cleanup_policy="compact")
    assert len(ottla_admin.partitions_of(name)) == 3
    assert ottla_admin.topic_configs(name)["cleanup.policy"].value == "compact"
    ottla_admin.delete_topic(name)

def test_a_fault_that_does_not_happen(ottla_faults):
    ottla_faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=None)

def test_is_forgotten(ottla_broker):
    assert ottla_broker.faults_left == 0

"""


def run(folder: Path, *arguments: str) -> str:
    (folder / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["process", "thread"])
def test_a_suite_uses_the_fixtures(tmp_path: Path, kind: str) -> None:
    assert "5 passed" in run(tmp_path, "-o", f"ottla_broker={kind}")


def test_workers_of_xdist_have_a_broker_each(tmp_path: Path) -> None:
    (tmp_path / "test_ports.py").write_text(
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_port(ottla_broker, worker_id, number):\n"
        "    with pathlib.Path('ports').open('a') as ports:\n"
        "        ports.write(f'{worker_id} {ottla_broker.bootstrap}\\n')\n"
    )
    run(tmp_path, "-n", "2", "--dist", "load")
    by_worker = {tuple(line.split()) for line in (tmp_path / "ports").read_text().splitlines()}
    assert len({worker for worker, _ in by_worker}) == len({port for _, port in by_worker}) == 2


def test_a_suite_may_have_settings_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def ottla_settings(ottla_settings):\n"
        "    return {**ottla_settings, 'num.partitions': '7'}\n"
    )
    (tmp_path / "test_settings.py").write_text(
        "from ottla.client import Producer\n"
        "def test_partitions(ottla_broker):\n"
        "    with Producer(ottla_broker.bootstrap) as producer:\n"
        "        assert producer.partition_count('made-by-the-broker') == 7\n"
    )
    assert "passed" in run(tmp_path)
