"""Brokers for tests: how they start, restart and end, in a process and on a thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from ottla.client import Admin, Producer, read
from ottla.client.errors import BrokerError
from ottla.testing import BrokerDied, BrokerProcess, BrokerThread


@pytest.mark.parametrize("kind", [BrokerProcess, BrokerThread])
def test_a_broker_keeps_data_and_address_through_a_restart(
    kind: type[BrokerProcess | BrokerThread], tmp_path: Path
) -> None:
    broker = kind(tmp_path).start()
    bootstrap = broker.bootstrap
    with Producer(bootstrap) as producer:
        producer.send("orders", b"first")
    broker.stop()
    assert not broker.running
    broker.start()
    assert broker.bootstrap == bootstrap
    assert [record.value for record in read(bootstrap, "orders")] == [b"first"]
    broker.stop()


@pytest.mark.parametrize("kind", [BrokerProcess, BrokerThread])
def test_faults_meet_requests_until_they_are_used_up_or_cancelled(
    kind: type[BrokerProcess | BrokerThread],
) -> None:
    with kind() as broker, Admin(broker.bootstrap) as admin:
        fault = broker.fail("CreateTopics", "POLICY_VIOLATION", times=2)
        for left in (1, 0):
            with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
                admin.create_topic("orders")
            assert fault.left == left
        admin.create_topic("orders")
        with broker.fail("CreateTopics", "POLICY_VIOLATION", times=None) as fault:
            assert fault.left == -1
            with pytest.raises(BrokerError, match="POLICY_VIOLATION"):
                admin.create_topic("bills")
        admin.create_topic("bills")
        broker.stall("Fetch")
        broker.heal()
        assert broker.faults_left == 0


def test_a_fault_may_be_meant_for_one_client_only() -> None:
    with BrokerThread() as broker:
        broker.fail("CreateTopics", "POLICY_VIOLATION", times=None, client_id="unlucky")
        with Admin(broker.bootstrap, client_id="lucky") as admin:
            admin.create_topic("orders")
        with Admin(broker.bootstrap, client_id="unlucky") as admin, pytest.raises(BrokerError):
            admin.create_topic("bills")


@pytest.mark.parametrize(
    ("api", "error", "message"),
    [("Produces", "NOT_COORDINATOR", "did you mean Produce"), ("Fetch", "NOT_LEADER", "NOT_LEADER_OR_FOLL")],
)
def test_a_misspelt_fault_is_refused_with_the_nearest_name(api: str, error: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BrokerProcess().fail(api, error)


def test_a_broker_that_is_not_running_takes_no_faults() -> None:
    with pytest.raises(BrokerDied, match="start it"):
        BrokerProcess().fail("Fetch", "NOT_LEADER_OR_FOLLOWER")


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path), pytest.raises(BrokerDied, match="uses the data"):
        BrokerProcess(tmp_path).start()


def test_kill_ends_a_forked_broker_at_once_and_tells_the_signal() -> None:
    broker = BrokerProcess().start()
    pid = broker.pid
    assert broker.kill() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_no_broker_outlives_the_test_that_was_killed(tmp_path: Path) -> None:
    program = """
        import sys, time
        from ottla.testing import BrokerProcess
        print(BrokerProcess().start().pid, flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout is not None
        pid = int(test.stdout.readline())
        test.kill()
    deadline = time.monotonic() + 30
    while _is_running(pid):
        assert time.monotonic() < deadline, "the broker runs on"
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    """A process that nobody has reaped yet is there, but does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_no_command_line_reaches_the_faults_of_a_broker() -> None:
    """They come with the line that `ottla.testing` holds; `ottla up` has no option and no port for them."""
    refused = subprocess.run(
        [sys.executable, "-m", "ottla", "up", "--surround", "x"], capture_output=True, text=True
    )
    assert refused.returncode == 2
