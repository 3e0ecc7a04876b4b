"""Topic to topic, exactly once, while driver, Python workers and broker are killed with -9 at every step."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.broker import unique_name
from ottla.client import read
from ottla.client.admin import Admin
from ottla.client.producer import Producer
from ottla.testing import BrokerProcess

FAULTS = Path(__file__).parent / "faults"
STEPS_OF_TASKS = ("claiming", "claimed", "writing", "written")
STEPS_OF_DRIVERS = ("deciding", "decided", "ended_first", "ended_all", "noted")


class CopyJob:
    """A Spark application in processes of its own, which may be killed."""

    def __init__(self, broker: BrokerProcess, place: Path, source: str, sink: str) -> None:
        self.faults = place / "faults"
        self.faults.mkdir()
        self._place = place
        self._arguments = [broker.bootstrap, source, sink, str(place / "checkpoint")]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        paths = [str(FAULTS), str(FAULTS.parent.parent), *sys.path]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "OTTLA_FAULTS": str(self.faults),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self._place / "job.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(FAULTS / "copy_job.py"), *self._arguments],
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def arm(self, step: str, deed: str) -> None:
        draft = self.faults / "draft"
        draft.write_text(deed)
        draft.rename(self.faults / step)

    def wait_for(self, step: str) -> None:
        hit = (self.faults / step).with_suffix(".hit")
        deadline = time.monotonic() + 100
        while not hit.exists():
            assert self._process is not None
            assert self._process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.02)
        hit.unlink()

    def finish(self) -> None:
        assert self._process is not None
        assert self._process.wait(100) == 0, self.output()

    def kill(self) -> None:
        """All of its processes at once, as if the machine had gone."""
        if self._process is None:
            return
        members = _descendants(self._process.pid)
        for pid in members:
            _signal(pid, signal.SIGSTOP)
        for pid in sorted(set(members) | set(_descendants(self._process.pid))):
            _signal(pid, signal.SIGKILL)
        self._process.wait()
        for pid in members:
            while _is_there(pid):
                time.sleep(0.01)

    def output(self) -> str:
        return (self._place / "job.log").read_text()[-4000:]


def _descendants(pid: int) -> list[int]:
    """The process, and all that it and they have started."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_there(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def job(broker: BrokerProcess, admin: Admin, tmp_path: Path) -> Iterator[tuple[CopyJob, str, str]]:
    source, sink = unique_name("source"), unique_name("sink")
    for topic in (source, sink):
        admin.create_topic(topic, partitions=3, replication_factor=1)
    running = CopyJob(broker, tmp_path, source, sink)
    yield running, source, sink
    running.kill()


def _fill(broker: BrokerProcess, topic: str, count: int) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, key=b"%d" % number)


def _check_exactly_once(broker: BrokerProcess, topic: str, count: int) -> None:
    found = Counter(
        each.value for each in read(broker.bootstrap, topic, **{"isolation.level": "read_committed"})
    )
    twice = {value: times for value, times in found.items() if times > 1}
    missing = {b"%d" % number for number in range(count)} - set(found)
    assert (twice, missing) == ({}, set())


@pytest.mark.timeout(300)
def test_killed_drivers_workers_and_brokers_leave_each_record_once(
    broker: BrokerProcess, job: tuple[CopyJob, str, str]
) -> None:
    copy, source, sink = job
    _fill(broker, source, 900)
    copy.arm("written", "die")  # a task's worker: Spark tries the task again
    copy.start()
    copy.wait_for("written")
    broker.kill()
    broker.start()
    for step in ("deciding", "ended_first"):  # the driver's worker: the batch comes again
        copy.arm(step, "die")
        copy.wait_for(step)
    copy.arm("ended_first", "hang")
    copy.wait_for("ended_first")
    copy.kill()
    copy.start()
    copy.finish()
    _check_exactly_once(broker, sink, 900)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_dozens_of_random_kills_leave_each_record_once(
    broker: BrokerProcess, job: tuple[CopyJob, str, str], seed: int
) -> None:
    copy, source, sink = job
    chance = random.Random(seed)
    _fill(broker, source, 6000)
    copy.start()
    for _ in range(12):
        match chance.choice(("worker", "driver", "driver", "driver at once", "broker")):
            case "worker":
                step = chance.choice(STEPS_OF_TASKS + STEPS_OF_DRIVERS)
                copy.arm(step, "die")
                copy.wait_for(step)
            case "driver":
                step = chance.choice(STEPS_OF_TASKS + STEPS_OF_DRIVERS)
                copy.arm(step, "hang")
                copy.wait_for(step)
                copy.kill()
                copy.start()
            case "driver at once":
                time.sleep(chance.uniform(0, 15))
                copy.kill()
                copy.start()
            case "broker":
                time.sleep(chance.uniform(0, 5))
                broker.kill()
                time.sleep(chance.uniform(0, 2))
                broker.start()
    copy.finish()
    _check_exactly_once(broker, sink, 6000)
