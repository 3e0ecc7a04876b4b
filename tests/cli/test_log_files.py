"""`ottla log`: people and programs see what is in the files, what is wrong, and what a repair would do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cli.program import Program
from log.building import NOW_MS, TOPIC_ID, config, new_log, open_directory
from log.inspection.filled import BATCHES, FILES, filled_directory, flip, segment_paths
from ottla.coordinator.group_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    group_record,
    offset_record,
)
from ottla.coordinator.state_log import StateRecord
from ottla.coordinator.transaction import Transaction, TransactionState
from ottla.coordinator.transaction_records import transaction_record
from ottla.log.system_files import SystemFiles
from ottla.model.topics import TopicPartition
from ottla.records.batch import CheckedBatch, read_header
from ottla.records.content import Record, build_batch


@pytest.fixture
def partition(tmp_path: Path) -> str:
    return filled_directory(tmp_path / "home" / "log")


def test_dump_shows_every_kind_of_file_to_programs(ottla: Program, tmp_path: Path, partition: str) -> None:
    rows = ottla.ok("log", "dump", str(tmp_path / "home"), "-o", "jsonl").json_lines
    by_suffix: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        by_suffix.setdefault(Path(row["file"]).suffix or Path(row["file"]).name, []).append(row)
    assert len(by_suffix[".log"]) == BATCHES * 2
    assert {row["codec"] for row in by_suffix[".log"]} == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert {"offset", "position"} <= by_suffix[".index"][0].keys()
    assert {"timestamp", "offset"} <= by_suffix[".timeindex"][0].keys()
    assert {row["producer_id"] for row in by_suffix[".snapshot"]} == {7, 8}
    assert [row["epoch"] for row in by_suffix["leader-epoch-checkpoint"]] == [0, 1, 2]
    assert by_suffix["recovery-point-offset-checkpoint"][0]["offset"] == BATCHES * 8
    assert "topic_id" in by_suffix[".metadata"][0]
    assert ottla.ok("log", "dump", str(tmp_path / "home"), "-o", "json").json == rows


def test_dump_decodes_records_for_people_and_programs(ottla: Program, tmp_path: Path) -> None:
    directory, log = new_log(SystemFiles(), str(tmp_path / "log"), config())
    records = [
        Record(0, NOW_MS, "Schlüssel".encode(), b"text", (("h", b"1"), ("h", None))),
        Record(1, NOW_MS, b"\xff\x00", None),
    ]
    data = memoryview(build_batch(records))
    log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
    directory.close()
    path = segment_paths(log.directory)[0]
    table = ottla.ok("log", "dump", "--records", path).out
    assert "Schlüssel" in table
    assert "\\xff\\x00" in table
    first, second = ottla.ok("log", "dump", "--records", path, "-o", "jsonl").json_lines
    assert (first["key"], first["value"]) == ("Schlüssel", "text")
    assert first["headers"] == [{"name": "h", "value": "1"}, {"name": "h", "value": None}]
    assert (second["key_base64"], second["value"]) == ("/wA=", None)


def test_dump_shows_damage_where_it_lies(ottla: Program, partition: str) -> None:
    path = segment_paths(partition)[0]
    flip(path, 70)
    rows = ottla.ok("log", "dump", path, "-o", "jsonl").json_lines
    assert rows[0]["position"] == 0
    assert "checksum" in rows[0]["problem"]
    assert rows[1]["base_offset"] == 5


def dumped_states(ottla: Program, path: Path, topic: str, records: list[StateRecord]) -> list[Any]:
    """Key and value as `dump` shows them, of records in a log of one of the broker's own topics."""
    directory = open_directory(SystemFiles(), str(path))
    log = directory.create(TopicPartition(topic, 3), TOPIC_ID, config(), NOW_MS)
    data = memoryview(build_batch([Record(at, NOW_MS, *record) for at, record in enumerate(records)]))
    log.append([CheckedBatch(read_header(data), data)], 0, NOW_MS)
    directory.close()
    rows = ottla.ok("log", "dump", "--records", segment_paths(log.directory)[0], "-o", "jsonl").json_lines
    return [(row["key"], row["value"]) for row in rows]


def test_dump_makes_the_records_of_groups_readable(ottla: Program, tmp_path: Path) -> None:
    member = MemberMetadata("member-1", None, "client", "/10.0.0.1")
    records = [
        offset_record(OffsetCommitKey("billing", "orders", 4), OffsetCommitValue(42, 7, "note", NOW_MS)),
        group_record("billing", GroupMetadataValue("consumer", 5, "range", "member-1", NOW_MS, (member,))),
        offset_record(OffsetCommitKey("billing", "orders", 5), None),
        StateRecord(b"what is this", b"?"),
    ]
    assert dumped_states(ottla, tmp_path / "log", "__consumer_offsets", records) == [
        (
            "offset of group billing in orders-4",
            f"42, committed at {NOW_MS}, leader epoch 7, metadata 'note'",
        ),
        (
            "group billing",
            "generation 5, protocol consumer/range, leader member-1, members: member-1 (client at /10.0.0.1)",
        ),
        ("offset of group billing in orders-5", None),
        ("what is this", "?"),
    ]


def test_dump_makes_the_records_of_transactions_readable(ottla: Program, tmp_path: Path) -> None:
    partitions = frozenset({TopicPartition("orders", 1), TopicPartition("orders", 0)})
    ongoing = Transaction(9, 2, 60_000, TransactionState.ONGOING, partitions, NOW_MS, NOW_MS + 1)
    records = [transaction_record("billing", ongoing), transaction_record("billing", None)]
    assert dumped_states(ottla, tmp_path / "log", "__transaction_state", records) == [
        (
            "transactional id billing",
            f"ongoing, producer 9 epoch 2, timeout 60000 ms, updated at {NOW_MS + 1}, "
            "partitions: orders-0, orders-1",
        ),
        ("transactional id billing", None),
    ]


def test_verify_says_where_what_and_how_to_cure_it(ottla: Program, tmp_path: Path, partition: str) -> None:
    assert "Everything is whole" in ottla.ok("log", "verify", "--records", str(tmp_path / "home")).out
    path = segment_paths(partition)[1]
    flip(path, 70)
    done = ottla("log", "verify", str(tmp_path / "home"), "-o", "json")
    assert done.code == 1
    (finding,) = done.json
    assert (finding["kind"], finding["file"], finding["position"]) == ("corrupt middle", path, 0)
    assert "--drop-corrupt" in finding["cure"]
    assert ottla("log", "verify", path).code == 1
    assert ottla("log", "verify", segment_paths(partition)[0]).code == 0
    assert ottla("log", "verify", segment_paths(partition, ".index")[1]).code == 0


def test_verify_judges_a_single_file_by_its_log(ottla: Program, tmp_path: Path, partition: str) -> None:
    checkpoint = tmp_path / "home" / "log" / "recovery-point-offset-checkpoint"
    checkpoint.write_bytes(b"0\n1\norders 0 99999\n")
    assert ottla("log", "verify", str(checkpoint)).code == 1
    assert ottla("log", "verify", segment_paths(partition, ".snapshot")[0]).code == 0


def test_repair_only_talks_unless_told(ottla: Program, partition: str) -> None:
    path = segment_paths(partition)[0]
    flip(path, 70)
    before = Path(path).read_bytes()
    told = ottla("log", "repair", partition)
    assert told.code == 1
    assert "left:" in told.err
    dry = ottla.ok("log", "repair", partition, "--drop-corrupt")
    assert "take out 186 bytes at 0" in dry.out
    assert "--yes" in dry.err
    assert Path(path).read_bytes() == before
    ottla.ok("log", "repair", partition, "--drop-corrupt", "--yes")
    assert Path(f"{path}.0.removed").read_bytes() + Path(path).read_bytes() == before
    ottla.ok("log", "verify", partition)


def test_repair_refuses_beside_a_running_broker_and_verify_does_not(ottla: Program, partition: str) -> None:
    lock = FILES.lock(os.path.join(os.path.dirname(partition), ".lock"))
    try:
        assert "a broker uses" in ottla.fails(1, "log", "repair", partition)
        ottla.ok("log", "verify", partition)
        ottla.ok("log", "dump", partition)
    finally:
        lock.release()


def test_wrong_use_is_explained(ottla: Program, tmp_path: Path, partition: str) -> None:
    assert "does not exist" in ottla.fails(4, "log", "verify", str(tmp_path / "nothing"))
    (tmp_path / "empty").mkdir()
    assert "neither" in ottla.fails(2, "log", "verify", str(tmp_path / "empty"))
    assert "one partition" in ottla.fails(2, "log", "repair", str(tmp_path / "home"), "--cut-at", "5")
    assert "alone" in ottla.fails(2, "log", "repair", segment_paths(partition)[0])
    stranger = tmp_path / "stranger.txt"
    stranger.write_text("?")
    assert "no file of a log" in ottla.fails(2, "log", "dump", str(stranger))
