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
_PATIENCE_SECONDS = 900  # a loaded machine starts Spark slowly; the marks below are shorter
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

    @property
    def is_done(self) -> bool:
        """Whether it has copied everything and ended."""
        return self._process is not None and self._process.poll() == 0

    def wait_for(self, step: str) -> None:
        assert self.reached(step), self.output()

    def reached(self, step: str) -> bool:
        """Once the job is there; false when it has ended before."""
        hit = (self.faults / step).with_suffix(".hit")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not hit.exists():
            assert self._process is not None
            if self._process.poll() is not None:
                assert self._process.returncode == 0, self.output()
                return False
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.02)
        hit.unlink()
        return True

    def finish(self) -> None:
        assert self._process is not None
        assert self._process.wait(_PATIENCE_SECONDS) == 0, self.output()

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


def _fill(broker: BrokerProcess, topic: str, numbers: range) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in numbers:
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
    _fill(broker, source, range(900))
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


class Kills:
    """A job that gets something to do before each kill, so that it is there to be killed."""

    _MORE = 400  # records, of which a batch takes 100

    def __init__(self, broker: BrokerProcess, copy: CopyJob, source: str, seed: int) -> None:
        self.count = 0
        self._broker = broker
        self._copy = copy
        self._source = source
        self._chance = random.Random(seed)

    def once(self) -> None:
        chance, copy = self._chance, self._copy
        kind = chance.choice(("worker", "driver", "driver", "driver at once", "broker"))
        step = chance.choice(STEPS_OF_TASKS + STEPS_OF_DRIVERS)
        if kind in ("worker", "driver"):
            copy.arm(step, "die" if kind == "worker" else "hang")
        _fill(self._broker, self._source, range(self.count, self.count + self._MORE))
        self.count += self._MORE
        if self.count == self._MORE or copy.is_done:
            copy.start()
        if kind in ("worker", "driver"):
            self._reach(step)
        else:
            time.sleep(chance.uniform(0, 5 if kind == "broker" else 15))
        if kind == "broker":
            self._broker.kill()
            time.sleep(chance.uniform(0, 2))
            self._broker.start()
        elif kind != "worker":
            copy.kill()
            copy.start()

    def _reach(self, step: str) -> None:
        """The job may have ended between the last look at it and the new records."""
        while not self._copy.reached(step):
            if self._copy.is_done:
                self._copy.start()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(8))
def test_dozens_of_random_kills_leave_each_record_once(
    broker: BrokerProcess, job: tuple[CopyJob, str, str], seed: int
) -> None:
    copy, source, sink = job
    kills = Kills(broker, copy, source, seed)
    for _ in range(6):
        kills.once()
    copy.finish()
    copy.start()  # what came when the last one had looked is copied now
    copy.finish()
    _check_exactly_once(broker, sink, kills.count)
