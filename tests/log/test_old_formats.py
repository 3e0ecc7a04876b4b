"""Files of old brokers: opened or recovered, looked up by offset and time, kept and appended to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from log.building import NOW_MS, PARTITION, append, config, new_log, open_directory, sync
from log.cleaning import clean as compact
from old_messages import OLD_CODECS, OLD_FORMATS, as_kept, old_set
from ottla.log.directory import LogDirectory
from ottla.log.file_names import offset_name
from ottla.log.inspection.directory_check import check_directory
from ottla.log.partition_log import PartitionLog
from ottla.log.system_files import SystemFiles
from ottla.records.compression import Codec
from ottla.records.content import Record
from ottla.records.formats import records_of, scan
from ottla.records.legacy import build_legacy

FILES = SystemFiles()
SET_SIZE = 5
SEGMENT_SIZE = 40
RECORDS = [Record(at, NOW_MS + at * 10, b"key %d" % at, b"value %d" % at) for at in range(3 * SEGMENT_SIZE)]

every_format = pytest.mark.parametrize("magic", OLD_FORMATS)
every_codec = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())


def stored(records: list[Record], magic: int, codec: Codec) -> bytes:
    write = build_legacy if (magic, codec) == (0, Codec.LZ4) else old_set
    sets = [records[at : at + SET_SIZE] for at in range(0, len(records), SET_SIZE)]
    return b"".join(write(part, magic, codec) for part in sets)


def old_directory(
    path: Path, magic: int, codec: Codec, *, clean: bool, torn_bytes: int = 0, records: list[Record] = RECORDS
) -> LogDirectory:
    """A directory as an old broker left it: no time indexes, no epochs, no snapshots; then opened."""
    directory, log = new_log(FILES, str(path), config(retention_ms=-1))
    directory.close()
    partition = Path(log.directory)
    for file in partition.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for base in range(0, len(records), SEGMENT_SIZE):
        content = stored(records[base : base + SEGMENT_SIZE], magic, codec)
        (partition / offset_name(base, ".log")).write_bytes(content)
    if torn_bytes:
        os.truncate(partition / offset_name(base, ".log"), len(content) - torn_bytes)
    (path / "recovery-point-offset-checkpoint").unlink()
    if not clean:
        (path / ".kafka_cleanshutdown").unlink()
    return open_directory(FILES, str(path), config(retention_ms=-1))


def read_from(log: PartitionLog, offset: int, bytes_max: int = 1 << 20) -> list[Record]:
    found: list[Record] = []
    while (part := log.read(offset, bytes_max, log.log_end_offset)) is not None:
        data = part.read()
        for position, header in scan(data):
            found += records_of(data[position : position + header.size])
        offset = found[-1].offset + 1
    return found


@every_format
@every_codec
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_every_record_is_found_from_every_offset(
    tmp_path: Path, magic: int, codec: Codec, clean: bool
) -> None:
    log = old_directory(tmp_path, magic, codec, clean=clean).logs[PARTITION]
    assert (log.log_start_offset, log.log_end_offset) == (0, len(RECORDS))
    kept = as_kept(RECORDS, magic)
    assert read_from(log, 0, bytes_max=300) == kept
    for offset in (1, 4, 5, 39, 40, 41, 77, 119):
        found = read_from(log, offset)
        assert [record for record in found if record.offset >= offset] == kept[offset:]
        assert found[0].offset > offset - SET_SIZE, "no more than the set that holds the offset"


@every_codec
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_times_are_looked_up_in_format_1_and_unknown_in_format_0(
    tmp_path: Path, codec: Codec, clean: bool
) -> None:
    log = old_directory(tmp_path / "one", 1, codec, clean=clean).logs[PARTITION]
    for at in (0, 3, 39, 40, 119):
        for asked in (RECORDS[at].timestamp, RECORDS[at].timestamp - 5):
            found = log.offset_for_timestamp(asked)
            assert found is not None
            assert (found.offset, found.timestamp, found.leader_epoch) == (at, RECORDS[at].timestamp, -1)
    assert log.offset_for_timestamp(RECORDS[-1].timestamp + 1) is None
    newest = log.offset_for_max_timestamp()
    assert newest is not None
    assert newest[:2] == (119, RECORDS[-1].timestamp)
    log = old_directory(tmp_path / "zero", 0, codec, clean=clean).logs[PARTITION]
    assert log.offset_for_timestamp(0) is None
    assert log.offset_for_max_timestamp() is None


@every_format
@every_codec
def test_new_batches_follow_old_messages(tmp_path: Path, magic: int, codec: Codec) -> None:
    directory = old_directory(tmp_path, magic, codec, clean=False)
    log = directory.logs[PARTITION]
    append(log, [b"new"], epoch=3, timestamp=NOW_MS + 10_000)
    sync(log)
    directory.close({PARTITION: log.log_end_offset})
    assert check_directory(FILES, str(tmp_path), look_inside=True).findings == []
    reopened = open_directory(FILES, str(tmp_path), config(retention_ms=-1)).logs[PARTITION]
    assert [record.value for record in read_from(reopened, 0)] == [r.value for r in RECORDS] + [b"new"]
    found = reopened.offset_for_timestamp(NOW_MS + 10_000)
    assert found is not None
    assert (found.offset, found.leader_epoch) == (len(RECORDS), 3)


@every_format
@every_codec
def test_a_torn_old_message_is_cut_off(tmp_path: Path, magic: int, codec: Codec) -> None:
    log = old_directory(tmp_path, magic, codec, clean=False, torn_bytes=3).logs[PARTITION]
    end = log.log_end_offset
    assert end == len(RECORDS) - (SET_SIZE if codec else 1)
    assert read_from(log, 0) == as_kept(RECORDS, magic)[:end]


def test_retention_goes_by_the_time_in_messages_or_by_the_age_of_files(tmp_path: Path) -> None:
    day_ms = 24 * 3600 * 1000
    log = old_directory(tmp_path / "one", 1, Codec.GZIP, clean=True).logs[PARTITION]
    log.set_config(config(retention_ms=day_ms))
    assert not log.apply_retention(NOW_MS + day_ms, log.log_end_offset)
    assert log.apply_retention(RECORDS[SEGMENT_SIZE - 1].timestamp + day_ms + 1, log.log_end_offset)
    assert log.log_start_offset == SEGMENT_SIZE
    log = old_directory(tmp_path / "zero", 0, Codec.GZIP, clean=True).logs[PARTITION]
    log.set_config(config(retention_ms=day_ms))
    written_ms = FILES.modified_ms(log.segments[0].log.path)
    assert not log.apply_retention(written_ms + day_ms // 2, log.log_end_offset)
    assert log.apply_retention(written_ms + 2 * day_ms, log.log_end_offset)


@every_format
@every_codec
def test_old_messages_are_compacted_in_their_own_format(tmp_path: Path, magic: int, codec: Codec) -> None:
    topic = config(retention_ms=-1, cleanup_compact=True, cleanup_delete=False)
    keyed = [record._replace(key=b"key %d" % (record.offset % 7)) for record in RECORDS]
    directory = old_directory(tmp_path, magic, codec, clean=False, records=keyed)
    directory.close()
    directory = open_directory(FILES, str(tmp_path), topic)
    log = directory.logs[PARTITION]
    assert compact(FILES, directory, log, NOW_MS) is not None
    cleaned = keyed[: 2 * SEGMENT_SIZE]  # the active segment is left alone
    latest = {record.key: record.offset for record in cleaned}
    wanted = [record for record in cleaned if latest[record.key] == record.offset] + keyed[2 * SEGMENT_SIZE :]
    assert read_from(log, 0) == as_kept(wanted, magic)
    data = Path(log.segments[0].log.path).read_bytes()
    assert {(header.magic, header.codec) for _, header in scan(data)} == {(magic, codec)}
    directory.close()
    assert check_directory(FILES, str(tmp_path), look_inside=True).findings == []
