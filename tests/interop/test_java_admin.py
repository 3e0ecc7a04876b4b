"""The Java AdminClient creates, describes, changes and deletes a topic; each answer is what Kafka gives."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from compat.broker import unique_name
from compat.cases import QUICK
from compat.clients.confluent import Confluent
from compat.record import Record
from interop.builds import java_command

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

_START_MS = 1_700_000_000_000


def _admin(command: str, bootstrap: str, topic: str) -> dict[str, Any]:
    done = subprocess.run(
        [*java_command(), "AdminDriver", command, bootstrap, topic],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.fixture(scope="module")
def topic() -> str:
    return unique_name("administered")


@pytest.fixture(scope="module")
def created(bootstrap: str, topic: str) -> dict[str, Any]:
    return _admin("create", bootstrap, topic)


@pytest.fixture(scope="module")
def shown(bootstrap: str, topic: str, created: dict[str, Any]) -> dict[str, Any]:
    records = [Record("timed", value=bytes(100), timestamp_ms=_START_MS + i) for i in range(10)]
    Confluent().write(bootstrap, topic, 0, records, QUICK)
    return _admin("administer", bootstrap, topic)


def test_topic_is_created_as_asked(created: dict[str, Any]) -> None:
    wanted = {"partitions": 3, "replication_factor": 1, "segment_bytes": "2000000", "listed": True}
    assert {name: created[name] for name in wanted} == wanted
    assert created["validated_is_listed"] is False


@pytest.mark.parametrize(
    ("mistake", "refusal"),
    [
        ("existing", "TopicExistsException"),
        ("bad_name", "InvalidTopicException"),
        ("bad_config", "InvalidConfigurationException"),
        ("too_many_replicas", "InvalidReplicationFactorException"),
    ],
)
def test_mistakes_in_creation_are_refused(created: dict[str, Any], mistake: str, refusal: str) -> None:
    assert created[mistake] == refusal


def test_topic_is_described_by_name_and_by_id(
    created: dict[str, Any], shown: dict[str, Any], topic: str
) -> None:
    assert shown["described_id"] == created["topic_id"]
    assert shown["described_by_id"] == topic
    assert shown["described_internal"] is False
    leader = f"{shown['controller']} of 1 in sync 1"
    assert shown["described_partitions"] == {"0": leader, "1": leader, "2": leader}


def test_settings_are_described_and_changed(shown: dict[str, Any]) -> None:
    wanted = {
        "source_before": "DYNAMIC_TOPIC_CONFIG",
        "retention_source_before": "DEFAULT_CONFIG",
        "retention_after": "777777",
        "policy_after": "delete,compact",
        "segment_bytes_after": "1073741824",
        "wrong_config": "InvalidConfigurationException",
        "lists_topic_resources": True,
        "broker_message_max_bytes": "1048588",
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_offsets_are_listed_and_records_deleted(shown: dict[str, Any]) -> None:
    wanted = {
        "earliest": 0,
        "latest": 10,
        "newest": 9,
        "newest_timestamp_ms": _START_MS + 9,
        "at_newest": 9,
        "after_newest": -1,
        "earliest_local": 0,
        "low_watermark": 4,
        "earliest_after_deletion": 4,
        "beyond_the_end": "OffsetOutOfRangeException",
    }
    assert {name: shown[name] for name in wanted} == wanted


def test_cluster_and_log_directories_are_described(bootstrap: str, shown: dict[str, Any]) -> None:
    assert shown["cluster_id"]
    assert shown["nodes"] == {str(shown["controller"]): bootstrap}
    sizes = shown["log_sizes"]
    assert set(sizes) == {"0", "1", "2"}
    assert 1000 < sizes["0"] < 3000
    assert sizes["1"] == sizes["2"] == 0


def test_partitions_are_added_and_the_topic_deleted(shown: dict[str, Any]) -> None:
    assert shown["shrink"] == "InvalidPartitionsException"
    assert shown["deleted_twice"] == "UnknownTopicOrPartitionException"
    assert shown["described_after_deletion"] == "UnknownTopicOrPartitionException"
