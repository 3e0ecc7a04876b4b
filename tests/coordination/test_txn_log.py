"""What was durable comes back; a torn tail is cut; damage to what was durable is a loud error with a cure."""

from __future__ import annotations

import errno

import pytest

from coordination.disk import DIRECTORY, LoggedTree, content, file_names, overwrite, read, tree_after
from faults.power_cut import SimulatedFiles
from ottla.coordination import frames, txn_log
from ottla.coordination.acls import Acl
from ottla.coordination.frames import FRAME_BYTES, HEADER_BYTES
from ottla.coordination.operations import Create, SetData
from ottla.coordination.recovery import log_name, snapshot_name
from ottla.coordination.txns import (
    DURABLE_ZXID,
    AclSet,
    Created,
    DataSet,
    Deleted,
    SessionClosed,
    SessionOpened,
    Txn,
    decode_txn,
    encode_record,
    encode_txn,
)
from ottla.model.errors import CorruptData


def three_records(files: SimulatedFiles) -> LoggedTree:
    logged = LoggedTree(files)
    for step in (Create("/a", b"1"), Create("/a/b", None), SetData("/a", b"22")):
        logged.do(step)
        logged.sync()
    return logged


def tag_of(log: bytes) -> int:
    header = frames.decode_header(frames.LOG_MAGIC, log, "log")
    assert header is not None
    return header.tag


def record_positions(data: bytes) -> list[int]:
    """Where each record of a log file begins, and the end of the file."""
    positions = [HEADER_BYTES]
    while (frame := frames.frame_at(data, positions[-1], tag_of(data))) is not None:
        positions.append(frame.end)
    return positions


def written(files: SimulatedFiles) -> bytes:
    """The first log file without the zeros that it is filled with behind its records."""
    data = read(files, log_name(1))
    end = record_positions(data)[-1]
    assert not data[end:].strip(b"\0")
    return data[:end]


TXN = Txn(
    7,
    1_700_000_000_000,
    (
        Created("/é", b"data", -(2**63), (Acl(1, "ip", "::1"), Acl(31, "digest", "a:ü"))),
        Created("/n", None, 0),
        DataSet("/x", b""),
        Deleted("/y"),
        AclSet("/z", (Acl(1, "world", "anyone"),)),
        SessionOpened(5, 4_000, bytes(range(16))),
        SessionClosed(5),
    ),
)


def test_a_transaction_survives_its_bytes() -> None:
    assert decode_txn(encode_txn(TXN)) == TXN
    assert decode_txn(encode_txn(Txn(1, 0, ()))) == Txn(1, 0, ())


@pytest.mark.parametrize("data", [None, b"", b"x" * 300])
def test_a_single_change_of_data_is_written_as_any_other_transaction(data: bytes | None) -> None:
    txn = Txn(2**40 + 7, 1_700_000_000_123, (DataSet("/a/é/日本", data),))
    record = encode_record(txn, 2**40 + 5)
    assert record == DURABLE_ZXID.pack(2**40 + 5) + encode_txn(txn)
    frame = frames.encode_frame(record, 0xF00D_CAFE)
    assert frames.frame_at(frame, 0, 0xF00D_CAFE) == (record, len(frame))


def test_bytes_that_are_no_transaction_are_refused() -> None:
    data = encode_txn(TXN)
    for size in range(len(data)):
        with pytest.raises(ValueError, match="transaction"):
            decode_txn(data[:size])
    with pytest.raises(ValueError, match="follow"):
        decode_txn(data + b"x")
    with pytest.raises(ValueError, match="unknown kind"):
        decode_txn(data[:20] + b"\x09" + data[21:])


def test_a_start_finds_what_the_last_one_left() -> None:
    files = SimulatedFiles()
    first = three_records(files)
    first.log.close()
    second = LoggedTree(files, first.history)
    assert content(second.tree) == content(first.tree)
    second.do(Create("/c"))
    second.log.close()  # what waits for a round is written too
    third = LoggedTree(files, second.history)
    assert content(third.tree) == content(second.tree)
    assert file_names(files) == [log_name(1)]
    third.log.close()
    assert files.open_count == 0


def test_nothing_is_written_when_nothing_happens() -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    operations = files.operations
    assert logged.log.begin_sync() is None
    assert files.operations == operations


def test_one_round_syncs_everything_before_it_and_only_that() -> None:
    files = SimulatedFiles()
    logged = LoggedTree(files)
    for number in range(50):
        logged.do(Create(f"/{number}"))
    ticket = logged.log.begin_sync()
    assert ticket is not None
    logged.do(Create("/late"))
    assert logged.log.begin_sync() is None  # one at a time
    before = files.operations
    ticket.run()
    assert files.operations - before == 5  # create, fill, append, sync, sync of the directory
    logged.log.finish_sync(ticket)
    assert logged.log.durable_zxid == 50
    logged.sync()
    assert logged.log.durable_zxid == 51


def test_a_tail_torn_at_any_byte_is_cut_and_the_log_goes_on() -> None:
    whole = SimulatedFiles()
    history = three_records(whole).history
    data = written(whole)
    positions = record_positions(data)
    assert positions[-1] == len(data)
    for size in range(len(data)):
        for rest in (b"", bytes(40), b"\xff" * 9):
            files = SimulatedFiles()
            files.make_directories(DIRECTORY)
            files.create(f"{DIRECTORY}/{log_name(1)}").close()
            overwrite(files, log_name(1), data[:size] + rest)
            logged = LoggedTree(files)
            kept = sum(1 for position in positions[1:] if position <= size)
            assert content(logged.tree) == content(tree_after(history, kept))
            logged.do(Create("/next"))
            logged.sync()
            again = LoggedTree(files.cut(size))
            assert content(again.tree) == content(logged.tree)


def test_a_log_is_filled_ahead_and_a_start_says_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    size = len(read(files, log_name(1)))
    assert size > txn_log.FILL_BYTES_MIN
    for number in range(100):
        logged.do(Create(f"/{number}"))
        logged.sync()
    assert len(read(files, log_name(1))) == size
    again = LoggedTree(files.cut(1), logged.history)
    assert content(again.tree) == content(logged.tree)
    again.do(Create("/next"))
    again.sync()
    assert content(LoggedTree(files).tree) == content(logged.tree)
    assert not caplog.records


def test_without_room_to_fill_it_a_log_goes_on() -> None:
    files = SimulatedFiles()
    logged = LoggedTree(files)
    files.capacity_bytes = txn_log.FILL_BYTES_MIN // 2
    for number in range(10):
        logged.do(Create(f"/{number}"))
        logged.sync()
    assert read(files, log_name(1)) == written(files)
    assert content(LoggedTree(files.cut(1)).tree) == content(logged.tree)


def test_damage_to_what_was_acknowledged_is_loud_and_names_place_and_cure() -> None:
    whole = SimulatedFiles()
    history = three_records(whole).history
    data = written(whole)
    positions = record_positions(data)
    for position in range(len(data)):
        files = SimulatedFiles()
        files.make_directories(DIRECTORY)
        files.create(f"{DIRECTORY}/{log_name(1)}").close()
        damaged = bytearray(data)
        damaged[position] ^= 0x04
        overwrite(files, log_name(1), bytes(damaged))
        if position >= positions[-2]:
            # The newest record: nothing behind it tells a torn write from a failing disk.
            assert content(LoggedTree(files).tree) == content(tree_after(history, 2))
            continue
        with pytest.raises(CorruptData) as raised:
            LoggedTree(files)
        start = max(start for start in (0, *positions) if start <= position)
        assert f"{DIRECTORY}/{log_name(1)} is damaged at position {start}" in str(raised.value)
        assert "Restore the directory from a backup" in str(raised.value)
        assert read(files, log_name(1)) == bytes(damaged)  # left as it is, for whoever repairs it


def test_records_of_one_round_may_tear_in_any_order() -> None:
    """The disk may keep the second record of an unfinished round and lose the first: just a tail."""
    files = SimulatedFiles()
    logged = three_records(files)
    durable = written(files)
    logged.do(Create("/unsynced-1"))
    logged.do(Create("/unsynced-2"))
    logged.sync()
    data = bytearray(written(files))
    data[len(durable) + FRAME_BYTES] ^= 0xFF
    overwrite(files, log_name(1), bytes(data))
    recovered = LoggedTree(files)
    assert recovered.tree.last_zxid == 3
    assert read(files, log_name(1)) == durable


def test_a_right_checksum_over_wrong_content_is_loud() -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    data = written(files)
    cases = {
        "content is not": b"\x00" * 8 + b"garbage",
        "does not fit the state": b"\x00" * 8 + encode_txn(Txn(4, 0, (Deleted("/nowhere"),))),
    }
    for text, payload in cases.items():
        overwrite(files, log_name(1), data + frames.encode_frame(payload, tag_of(data)))
        with pytest.raises(CorruptData, match=text):
            LoggedTree(files, logged.history)


def test_what_a_client_stores_cannot_pass_for_a_record() -> None:
    """The torn tail holds a whole record that claims great things, inside of a znode's data."""
    files = SimulatedFiles()
    logged = three_records(files)
    durable = written(files)
    tag = tag_of(durable)
    forged = frames.encode_frame((2**60).to_bytes(8, "big") + encode_txn(TXN), tag ^ 1)
    logged.do(Create("/forged", forged))
    logged.sync()
    data = bytearray(written(files))
    data[len(durable) + FRAME_BYTES] ^= 0xFF
    overwrite(files, log_name(1), bytes(data))
    assert LoggedTree(files).tree.last_zxid == 3


def test_strangers_in_the_directory_are_left_alone() -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    logged.log.close()
    strangers = ["log.bak", f"{log_name(1)}.bak", "snapshot.txt", "notes.tmp"]
    for name in strangers:
        files.create(f"{DIRECTORY}/{name}").close()
    assert content(LoggedTree(files).tree) == content(logged.tree)
    assert set(strangers) < set(file_names(files))


def test_files_of_another_format_are_not_guessed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    files = SimulatedFiles()
    with monkeypatch.context() as newer:
        newer.setattr(frames, "FORMAT_VERSION", 3)
        three_records(files)
    with pytest.raises(CorruptData, match=r"format version 3.*start it with the Ottla that wrote it"):
        LoggedTree(files)


class TestSnapshots:
    def grow(self, logged: LoggedTree, first: int, count: int) -> None:
        for number in range(first, first + count):
            logged.do(Create(f"/{number:06}", bytes(50)))
            logged.sync()

    def test_a_log_that_has_grown_becomes_a_snapshot_and_old_files_go(self) -> None:
        files = SimulatedFiles()
        logged = LoggedTree(files, snapshot_log_bytes=500)
        seen = set()
        for number in range(100):
            self.grow(logged, number, 1)
            seen.update(file_names(files))
        names = file_names(files)
        assert sum(name.startswith("snapshot.") for name in names) == txn_log.SNAPSHOTS_KEPT
        assert len(names) < 8 < len(seen)
        recovered = LoggedTree(files.cut(1), logged.history, 500)
        assert content(recovered.tree) == content(logged.tree)

    def test_snapshots_become_rarer_as_the_tree_grows(self) -> None:
        files = SimulatedFiles()
        logged = LoggedTree(files, snapshot_log_bytes=500)
        self.grow(logged, 0, 400)
        renames = []
        files_rename = files.rename
        files.rename = lambda source, target: (renames.append(target), files_rename(source, target))[1]  # type: ignore[method-assign]
        self.grow(logged, 400, 100)
        assert len(renames) <= 1

    def test_a_damaged_snapshot_is_replaced_by_the_one_before_it(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ottla.coordination.snapshots.SLICE_NODES", 5)
        files = SimulatedFiles()
        logged = LoggedTree(files, snapshot_log_bytes=500)
        for number in range(80):  # one round each, so that a log file begins while a snapshot is written
            logged.do(Create(f"/{number}", bytes(50)))
            ticket = logged.log.begin_sync()
            assert ticket is not None
            ticket.run()
            logged.log.finish_sync(ticket)
        logged.log.close()
        newest = max(name for name in file_names(files) if name.startswith("snapshot.") and "tmp" not in name)
        overwrite(files, newest, read(files, newest)[:-1])
        recovered = LoggedTree(files, logged.history)
        assert content(recovered.tree) == content(logged.tree)
        assert f"{newest} is damaged" in caplog.text

    def test_a_missing_log_is_loud(self) -> None:
        files = SimulatedFiles()
        logged = LoggedTree(files, snapshot_log_bytes=500)
        self.grow(logged, 0, 60)
        logged.log.close()
        for name in file_names(files):
            if name.startswith("snapshot."):
                files.remove(f"{DIRECTORY}/{name}")
        with pytest.raises(CorruptData, match="a file is missing"):
            LoggedTree(files)

    def test_an_unfinished_snapshot_is_thrown_away(self) -> None:
        files = SimulatedFiles()
        three_records(files).log.close()
        files.create(f"{DIRECTORY}/{snapshot_name(3)}.tmp").close()
        assert LoggedTree(files).tree.last_zxid == 3
        assert file_names(files) == [log_name(1)]

    def test_requests_go_on_while_a_snapshot_is_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ottla.coordination.snapshots.SLICE_NODES", 5)
        files = SimulatedFiles()
        logged = LoggedTree(files, snapshot_log_bytes=3_000)
        self.grow(logged, 0, 22)
        rounds = 0
        while not any(
            name.startswith("snapshot.") and not name.endswith(".tmp") for name in file_names(files)
        ):
            logged.do(SetData("/000001", b"%d" % rounds))
            ticket = logged.log.begin_sync()
            assert ticket is not None
            ticket.run()
            logged.log.finish_sync(ticket)
            assert logged.log.durable_zxid == logged.tree.last_zxid
            rounds += 1
        assert rounds > 3
        assert content(LoggedTree(files.cut(0)).tree) == content(logged.tree)


def test_usual_rounds_are_one_durable_write_each() -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    for number in range(5):
        logged.do(Create(f"/{number}"))
        before = files.operations
        logged.sync()
        assert files.operations == before + 1
    assert content(LoggedTree(files.cut(0)).tree) == content(logged.tree)


def test_a_direct_write_that_fails_stops_the_round_and_loses_nothing() -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    logged.do(Create("/unlucky"))
    ticket = logged.log.begin_sync()
    assert ticket is not None
    assert ticket.direct is not None
    files.fail("direct", errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        ticket.run()
    assert logged.log.durable_zxid == 3
    recovered = LoggedTree(files.cut(5))
    assert content(recovered.tree) in [content(tree_after(logged.history, zxid)) for zxid in (3, 4)]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSPC])
def test_a_disk_that_refuses_direct_writes_gets_usual_ones(number: int) -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    for name in ("/first", "/second", "/third"):
        files.fail("direct", number)
        logged.do(Create(name))
        logged.sync()
        assert content(LoggedTree(files.cut(1)).tree) == content(logged.tree)


def test_the_log_is_the_same_with_and_without_direct_writes() -> None:
    logs = []
    for has_direct in (True, False):
        files = SimulatedFiles()
        files.has_direct = has_direct
        logged = three_records(files)
        for number in range(300):
            logged.do(Create(f"/{number}", bytes(number)))
            logged.sync()
        recovered = LoggedTree(files.cut(2))
        assert content(recovered.tree) == content(logged.tree)
        logs.append(len(read(files, log_name(1)).rstrip(b"\0")))
    assert logs[0] == logs[1]


@pytest.mark.parametrize("operation", ["append", "sync", "create", "sync_directory"])
def test_a_disk_that_fails_stops_the_round_and_loses_nothing(operation: str) -> None:
    files = SimulatedFiles()
    logged = three_records(files)
    logged.log.close()
    logged = LoggedTree(files, logged.history)
    logged.log._handle = None  # so that this round begins a file
    logged.do(Create("/unlucky"))
    ticket = logged.log.begin_sync()
    assert ticket is not None
    files.fail(operation, errno.EIO)
    with pytest.raises(OSError, match="Input/output error"):
        ticket.run()
    assert logged.log.durable_zxid == 3
    recovered = LoggedTree(files.cut(5))
    assert content(recovered.tree) in [content(tree_after(logged.history, zxid)) for zxid in (3, 4)]
