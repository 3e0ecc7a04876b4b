"""The batches of a segment, and the records in them, as rows. Damage is a row too: nothing is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ottla.log import file_names
from ottla.log.files import FileHandle, Files
from ottla.log.inspection.batch_walk import BrokenBytes, WholeBatch, walk
from ottla.log.inspection.readable import RecordDecoder, exact_fields
from ottla.log.transaction_markers import read_marker
from ottla.model.offsets import NO_LEADER_EPOCH
from ottla.records.batch import BatchHeader
from ottla.records.compression import Codec
from ottla.records.content import Record
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of
from ottla.records.legacy import UNKNOWN_COUNT

Row = Mapping[str, Any]

_CODEC_NAMES = {codec.value: codec.name.lower() for codec in Codec}


def batch_rows(files: Files, path: str) -> Iterator[Row]:
    for handle, part in _parts(files, path):
        if isinstance(part, BrokenBytes):
            yield _damage_row(part)
        else:
            yield _batch_row(handle, part)


def record_rows(files: Files, path: str, decoder: RecordDecoder | None) -> Iterator[Row]:
    for handle, part in _parts(files, path):
        if isinstance(part, BrokenBytes):
            yield _damage_row(part)
            continue
        batch = handle.pread(part.header.size, part.position)
        try:
            for record in records_of(batch):
                yield _record_row(record, part.header, batch, decoder)
        except CorruptRecords as error:
            yield {"offset": part.header.base_offset, "problem": str(error)}


def _parts(files: Files, path: str) -> Iterator[tuple[FileHandle, WholeBatch | BrokenBytes]]:
    base_offset = file_names.parse_offset(os.path.basename(path))
    assert base_offset is not None
    handle = files.open(path, writable=False)
    try:
        for part in walk(handle, handle.size, base_offset):
            yield handle, part
    finally:
        handle.close()


def _damage_row(damage: BrokenBytes) -> Row:
    return {"position": damage.position, "size": damage.size, "problem": damage.problem}


def _batch_row(handle: FileHandle, batch: WholeBatch) -> Row:
    position, header = batch
    row: dict[str, Any] = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": None if header.record_count == UNKNOWN_COUNT else header.record_count,
        "position": position,
        "size": header.size,
        "magic": header.magic,
        "codec": _CODEC_NAMES.get(header.codec, str(header.codec)),
        "timestamp": header.max_timestamp,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "leader_epoch": None if header.leader_epoch == NO_LEADER_EPOCH else header.leader_epoch,
        "producer_id": header.producer_id if header.has_producer else None,
        "producer_epoch": header.producer_epoch if header.has_producer else None,
        "base_sequence": header.base_sequence if header.has_producer else None,
        "kind": _kind(handle, position, header),
        "crc": f"{header.crc:08x}",
        "problem": None,
    }
    if header.delete_horizon_ms is not None:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    return row


def _kind(handle: FileHandle, position: int, header: BatchHeader) -> str:
    if header.is_control:
        return _marker_text(handle.pread(header.size, position))
    return "transactional" if header.is_transactional else "plain"


def _marker_text(batch: bytes) -> str:
    marker = read_marker(batch)
    if marker is None:
        return "control"
    return f"{'abort' if marker.is_abort else 'commit'} by coordinator epoch {marker.coordinator_epoch}"


def _record_row(record: Record, header: BatchHeader, batch: bytes, decoder: RecordDecoder | None) -> Row:
    row: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if header.is_control:
        return row | {"key": None, "value": _marker_text(batch), "headers": None, "problem": None}
    decoded = _decoded(record, decoder)
    if decoded is not None:
        row |= {"key": decoded[0], "value": decoded[1]}
    else:
        row |= exact_fields("key", record.key) | exact_fields("value", record.value)
    row["headers"] = [{"name": name, **exact_fields("value", value)} for name, value in record.headers]
    row["problem"] = None
    return row


def _decoded(record: Record, decoder: RecordDecoder | None) -> tuple[str | None, str | None] | None:
    if decoder is None:
        return None
    try:
        return decoder(record.key, record.value)
    except ValueError:  # a stranger's bytes in a topic of the broker's own
        return None
