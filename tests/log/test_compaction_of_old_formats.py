"""Messages of formats 0 and 1 are compacted like batches, and keep their format."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.building import NOW_MS, PARTITION, open_directory
from log.cleaning import DAY_MS, FILES, Compacted, records_in_one
from old_messages import OLD_CODECS, OLD_FORMATS, as_kept, old_set
from ottla.log.file_names import offset_name
from ottla.model.errors import CorruptData
from ottla.records.compression import Codec
from ottla.records.content import Record
from ottla.records.legacy import build_legacy

every_format = pytest.mark.parametrize("magic", OLD_FORMATS)
every_codec = pytest.mark.parametrize("codec", OLD_CODECS, ids=lambda codec: codec.name.lower())


def old_log(path: Path, magic: int, codec: Codec, *segments: list[Record], **settings: int) -> Compacted:
    """A log as an old broker left it, one set of messages in each segment."""
    compacted = Compacted(path, **settings)
    compacted.directory.close()
    partition = Path(compacted.log.directory)
    for file in partition.glob("0*"):
        file.unlink()
    write = build_legacy if (magic, codec) == (0, Codec.LZ4) else old_set
    for records in segments:
        (partition / offset_name(records[0].offset, ".log")).write_bytes(write(records, magic, codec))
    end_offset = segments[-1][-1].offset + 1
    compacted.directory = open_directory(FILES, compacted.path, compacted.topic)
    compacted.log = compacted.directory.logs[PARTITION]
    assert compacted.log.log_end_offset == end_offset
    compacted.roll()
    return compacted


def kept(compacted: Compacted) -> list[Record]:
    return [record for _, data in compacted.batches() for record in records_in_one(data)]


def records(first: int, *pairs: tuple[bytes, bytes | None]) -> list[Record]:
    return [Record(first + at, NOW_MS + at, key, value) for at, (key, value) in enumerate(pairs)]


@every_format
@every_codec
def test_the_last_value_of_each_key_stays(tmp_path: Path, magic: int, codec: Codec) -> None:
    first = records(0, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    second = records(3, (b"b", b"2"), (b"c", b"1"))
    compacted = old_log(tmp_path / "logs", magic, codec, first, second)
    compacted.clean()
    assert kept(compacted) == as_kept([first[2], *second], magic)
    assert {header.magic for header, _ in compacted.batches()} == {magic}
    assert {header.codec for header, _ in compacted.batches()} == {codec}
    compacted.reopen(cleanly=False)
    assert kept(compacted) == as_kept([first[2], *second], magic)


@every_format
def test_new_batches_outdate_old_messages(tmp_path: Path, magic: int) -> None:
    old = records(0, (b"a", b"1"), (b"b", b"1"))
    compacted = old_log(tmp_path / "logs", magic, Codec.GZIP, old)
    compacted.write(("a", "2"), roll=True)
    compacted.clean()
    assert [(offset, key) for offset, key, _ in compacted.records()] == [(1, "b"), (2, "a")]


@every_format
@pytest.mark.parametrize("younger_ms", [0, 1])
def test_tombstones_go_by_the_age_of_their_files(tmp_path: Path, magic: int, younger_ms: int) -> None:
    """Old messages cannot carry a time to go; files are compared with the newest of those cleaned before."""
    first = records(0, (b"a", None), (b"b", b"1"))
    second = records(2, (b"c", b"1"), (b"d", b"1"))
    compacted = old_log(tmp_path / "logs", magic, Codec.NONE, first, second, segment_bytes=100)
    compacted.clean()
    compacted.write(("b", "2"), roll=True)
    ages_ms = (NOW_MS - DAY_MS + younger_ms, NOW_MS)
    for segment, modified_ms in zip(compacted.log.segments, ages_ms, strict=False):
        FILES.set_modified_ms(segment.log.path, modified_ms)
    compacted.clean()
    assert ((0, "a", None) in compacted.records()) == bool(younger_ms)


def test_a_damaged_set_ends_the_pass(tmp_path: Path) -> None:
    old = records(0, (b"a", b"1"), (b"b", b"1"))
    compacted = old_log(tmp_path / "logs", 1, Codec.GZIP, old)
    path = Path(compacted.log.segments[0].log.path)
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptData, match="checksum"):
        compacted.clean()
