"""Transaction indexes from the log: aborted transactions, found by following every producer through it."""

from __future__ import annotations

import os

from ottla.log import file_names
from ottla.log.files import Files
from ottla.log.inspection.batch_walk import WholeBatch, walk
from ottla.log.producer_replay import apply_marker
from ottla.log.producer_state import ProducerStates
from ottla.log.txn_index import AbortedTransaction, encode_aborted


def rebuild_txn_indexes(files: Files, partition: str) -> dict[str, bytes]:
    """The content of each segment's index, by its path; only of those that have or need one."""
    producers = ProducerStates()
    names = [name for name, _ in files.list_directory(partition)]
    indexes = {}
    for name in sorted(name for name in names if name.endswith(file_names.LOG)):
        base_offset = file_names.parse_offset(name)
        if base_offset is None:
            continue
        content = b"".join(
            map(encode_aborted, _aborted(files, os.path.join(partition, name), base_offset, producers))
        )
        index_name = file_names.offset_name(base_offset, file_names.TXN_INDEX)
        if content or index_name in names:
            indexes[os.path.join(partition, index_name)] = content
    return indexes


def _aborted(
    files: Files, path: str, base_offset: int, producers: ProducerStates
) -> list[AbortedTransaction]:
    aborted = []
    handle = files.open(path, writable=False)
    try:
        for part in walk(handle, handle.size, base_offset):
            if not isinstance(part, WholeBatch) or not part.header.has_producer:
                continue
            position, header = part
            if not header.is_control:
                producers.apply(header, header.base_offset, header.max_timestamp)
                continue
            ended = apply_marker(producers, header, handle.pread(header.size, position))
            if ended is not None and ended.is_aborted:
                aborted.append(ended.as_aborted())
    finally:
        handle.close()
    return aborted
