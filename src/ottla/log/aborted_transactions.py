"""Aborted transactions of a log: noted in a segment's index with their marker, found again for a reader."""

from __future__ import annotations

import os

from ottla.log.producer_state import ProducerStates
from ottla.log.segment import Segment
from ottla.log.segment_list import SegmentList
from ottla.log.transaction_markers import read_marker
from ottla.log.txn_index import AbortedTransaction
from ottla.log.unsynced import Unsynced
from ottla.records.batch import CheckedBatch


def note_abort(
    segment: Segment, producers: ProducerStates, marker_batch: CheckedBatch, offset: int, unsynced: Unsynced
) -> None:
    """Before a marker is in the log: then a full disk refuses the marker, and no abort goes unnoted.

    If the append fails the entry stays until the next one with that offset: nobody can read so far.
    """
    marker = read_marker(marker_batch.body)
    if marker is None or not marker.is_abort:
        return
    completed = producers.ended_by(marker_batch.header.producer_id, offset, is_aborted=True)
    if completed is not None:
        segment.txn_index.truncate_to(offset)
        unsynced.files.append(segment.txn_index.append(completed.as_aborted()))
        unsynced.directories.add(os.path.dirname(segment.log.path))


def find_aborted(segments: SegmentList, offset: int, size: int) -> list[AbortedTransaction]:
    """Those that a reader of `size` bytes, from the batch that holds `offset` on, must leave out."""
    segment, start = segments.find(offset)
    end_offset = segment.offset_behind(start + size)
    aborted = []
    for at in range(segments.index_of(segment.base_offset), len(segments)):
        for transaction in segments[at].txn_index.ending_from(offset):
            if transaction.first_offset < end_offset:
                aborted.append(transaction)
            if transaction.last_stable_offset >= end_offset:
                return aborted  # whatever ended later began later
    return aborted
