"""What the operating system sees of a broker: for acks=all the sync returns before the answer is sent."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from calls import batch_of, create_topic, produce
from ottla.model.errors import ErrorCode
from ottla.testing import BrokerProcess
from wire import WireClient

_LINE = re.compile(r"^(?P<pid>\d+) +(?P<time>\d+\.\d+) (?P<call>.*)$")
_STARTED = re.compile(r"^(?P<name>\w+)\((?P<first>\d+)")
_RESUMED = re.compile(r"^<\.\.\. (?P<name>\w+) resumed>")
_DURATION = re.compile(r"<(?P<seconds>\d+\.\d+)>$")
_SYNCS = ("fdatasync", "fsync", "syncfs")
_SENDS = ("sendto", "sendmsg", "write", "writev")
MARK = b"the-record-that-is-followed"
WRITES = 5


class Call(NamedTuple):
    name: str
    text: str
    began: float
    ended: float


@contextmanager
def traced(pid: int, output: Path) -> Iterator[None]:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    calls = ",".join((*_SYNCS, *_SENDS, "pwritev", "pwritev2", "pwrite64"))
    command = ["strace", "-f", "-ttt", "-T", "-yy", "-s", "4096", "-e", f"trace={calls}", "-o", str(output)]
    tracer = subprocess.Popen([*command, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    attached = tracer.stderr.readline()
    if "attached" not in attached:
        tracer.kill()
        pytest.skip(f"strace cannot look at another process here: {attached.strip()}")
    try:
        yield
        time.sleep(0.5)  # what was seen is written
    finally:
        tracer.terminate()
        tracer.wait(30)
        tracer.stderr.close()


def calls_in(output: Path) -> list[Call]:
    """Whole calls; one that strace shows in two lines begins with the first and ends with the second."""
    unfinished: dict[str, tuple[str, str, float]] = {}
    found = []
    for line in output.read_text(errors="replace").splitlines():
        matched = _LINE.match(line)
        if matched is None:
            continue
        pid, began, text = matched["pid"], float(matched["time"]), matched["call"]
        if (resumed := _RESUMED.match(text)) and pid in unfinished:
            name, first_text, first_began = unfinished.pop(pid)
            assert name == resumed["name"]
            found.append(Call(name, first_text + text, first_began, began))
        elif (started := _STARTED.match(text)) and "<unfinished ...>" in text:
            unfinished[pid] = (started["name"], text, began)
        elif started and (duration := _DURATION.search(text)):
            found.append(Call(started["name"], text, began, began + float(duration["seconds"])))
    return found


def test_the_sync_returns_before_the_answer_to_acks_all_is_sent(tmp_path: Path) -> None:
    output = tmp_path / "calls"
    with BrokerProcess() as broker, WireClient(broker.bootstrap) as client:
        topic = create_topic(client)
        produce(client, topic, batch_of(b"warm"))
        with traced(broker.pid, output):
            for _ in range(WRITES):
                assert produce(client, topic, batch_of(MARK), acks=-1).error_code == ErrorCode.NONE
    calls = calls_in(output)
    log = f"{topic}-0/00000000000000000000.log"
    writes = [call for call in calls if call.name.startswith("pwrite") and MARK.decode() in call.text]
    assert len(writes) == WRITES, output.read_text()
    answers = [call for call in calls if call.name in _SENDS and "TCP" in call.text]
    syncs = [call for call in calls if call.name in _SYNCS and (log in call.text or call.name == "syncfs")]
    for write in writes:
        assert log in write.text
        answer = next(call for call in answers if call.began >= write.ended)
        synced = [sync for sync in syncs if sync.began >= write.ended and sync.ended <= answer.began]
        assert synced, "the answer to acks=all left before a sync had returned"
