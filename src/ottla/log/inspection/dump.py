"""What is in the files, as rows: one per batch, record, index entry, producer or line.

A row is a flat mapping that can be a table's line or a JSON object. Rows come as the file is read, so a
segment of any size can be shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ottla.log import checkpoints, directory_properties, file_names, leader_epochs
from ottla.log.files import Files
from ottla.log.inspection.batch_dump import Row, batch_rows, record_rows
from ottla.log.inspection.directory_check import OFFSET_CHECKPOINTS
from ottla.log.inspection.index_check import decode_entries
from ottla.log.inspection.readable import RecordDecoders
from ottla.log.leader_epochs import decode_epoch_starts
from ottla.log.offset_index import OffsetIndex
from ottla.log.producer_snapshots import decode_snapshot
from ottla.log.sparse_index import Entry, SparseIndex
from ottla.log.time_index import TimeIndex
from ottla.log.txn_index import decode_aborted
from ottla.model.topics import topic_id_text
from ottla.model.values import dataclass


@dataclass(slots=True, frozen=True)
class FileDump:
    path: str
    rows: Iterator[Row]  # CorruptData or OSError where the file ends to make sense


class UnknownFile(ValueError):
    """No file of a log has such a name."""


def dump_file(files: Files, path: str, *, records: bool, decoders: RecordDecoders) -> FileDump:
    """`records`: a log's records instead of its batches."""
    name = os.path.basename(path)
    if name.endswith(file_names.LOG) and file_names.parse_offset(name) is not None:
        if not records:
            return FileDump(path, batch_rows(files, path))
        partition = file_names.parse_directory(os.path.basename(os.path.dirname(path)))
        decoder = decoders.get(partition.topic) if partition is not None else None
        return FileDump(path, record_rows(files, path, decoder))
    rows = _BY_NAME.get(name) or next(
        (rows for suffix, rows in _BY_SUFFIX.items() if name.endswith(suffix) and _base_offset(path) >= 0),
        None,
    )
    if rows is None:
        raise UnknownFile(f"{path} is no file of a log")
    return FileDump(path, rows(files, path))


def _base_offset(path: str) -> int:
    offset = file_names.parse_offset(os.path.basename(path))
    return -1 if offset is None else offset


def _entries(files: Files, path: str, index_type: type[SparseIndex]) -> list[Entry]:
    return decode_entries(index_type, files.read_all(path))[0]


def _offset_index_rows(files: Files, path: str) -> Iterator[Row]:
    for relative_offset, position in _entries(files, path, OffsetIndex):
        yield {"offset": _base_offset(path) + relative_offset, "position": position}


def _time_index_rows(files: Files, path: str) -> Iterator[Row]:
    for timestamp, relative_offset in _entries(files, path, TimeIndex):
        yield {"timestamp": timestamp, "offset": _base_offset(path) + relative_offset}


def _txn_index_rows(files: Files, path: str) -> Iterator[Row]:
    for transaction in decode_aborted(files.read_all(path)):
        yield transaction._asdict()


def _snapshot_rows(files: Files, path: str) -> Iterator[Row]:
    for producer_id, entry in decode_snapshot(files.read_all(path)).items():
        last = entry.batches[-1] if entry.batches else None
        yield {
            "producer_id": producer_id,
            "producer_epoch": entry.epoch,
            "first_sequence": last.base_sequence if last is not None else None,
            "last_sequence": last.last_sequence if last is not None else None,
            "last_offset": last.last_offset if last is not None else None,
            "last_timestamp": entry.last_timestamp,
            "coordinator_epoch": entry.coordinator_epoch,
            "txn_first_offset": entry.txn_first_offset,
        }


def _epoch_rows(files: Files, path: str) -> Iterator[Row]:
    for entry in decode_epoch_starts(files.read_all(path)):
        yield entry._asdict()


def _checkpoint_rows(files: Files, path: str) -> Iterator[Row]:
    for partition, offset in checkpoints.decode_offsets(files.read_all(path)).items():
        yield {"topic": partition.topic, "partition": partition.partition, "offset": offset}


def _metadata_rows(files: Files, path: str) -> Iterator[Row]:
    yield {"topic_id": topic_id_text(checkpoints.decode_partition_metadata(files.read_all(path)))}


def _property_rows(files: Files, path: str) -> Iterator[Row]:
    for name, value in directory_properties.parse_properties(files.read_all(path)).items():
        yield {"name": name, "value": value}


_Rows = Callable[[Files, str], Iterator[Row]]
_BY_SUFFIX: dict[str, _Rows] = {
    file_names.OFFSET_INDEX: _offset_index_rows,
    file_names.TIME_INDEX: _time_index_rows,
    file_names.TXN_INDEX: _txn_index_rows,
    file_names.SNAPSHOT: _snapshot_rows,
}
_BY_NAME: dict[str, _Rows] = {
    leader_epochs.FILE_NAME: _epoch_rows,
    checkpoints.PARTITION_METADATA: _metadata_rows,
    directory_properties.FILE_NAME: _property_rows,
    **dict.fromkeys(OFFSET_CHECKPOINTS, _checkpoint_rows),
}
