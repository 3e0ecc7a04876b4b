"""Reading a coordinator's state back from its log, in slices: other groups and requests go on meanwhile.

Of each key only the last record counts, as after compaction; so a log of a million commits to ten keys is
ten records to apply. Only what transactions wrote is applied in order, since markers decide about it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator

from ottla.coordinator.state_log import StateMachine, StateRecord
from ottla.log.file_range import FileRange
from ottla.log.files import NotResident
from ottla.log.partition_log import PartitionLog
from ottla.log.transaction_markers import read_marker
from ottla.model.errors import CorruptData
from ottla.records.batch import BatchHeader
from ottla.records.findings import CorruptRecords
from ottla.records.formats import records_of, scan

log = logging.getLogger(__name__)

_APPLIED_AT_ONCE = 64
"""Records applied between two looks at the clock, some hundred microseconds."""

Steps = Generator[FileRange | None, None, None]


def load_steps(machine: StateMachine, own: PartitionLog, bytes_at_once: int) -> Steps:
    """As `long_requests` wants it: yields ranges that a worker has to read, and None where it may pause."""
    loader = _Loader(machine)
    offset = own.log_start_offset
    while offset < own.log_end_offset:
        found = yield from _read(own, offset, bytes_at_once)
        if found is None:
            break
        yield found  # a worker brings it into memory
        data = found.read()
        end = offset
        for position, header in scan(data):
            yield from loader.take(header, memoryview(data)[position : position + header.size])
            end = header.next_offset
        if end <= offset:
            raise CorruptData(f"{own.topic_partition} holds no batch at offset {offset}")
        offset = end
    yield from loader.apply_latest()


def _read(
    own: PartitionLog, offset: int, bytes_max: int
) -> Generator[FileRange | None, None, FileRange | None]:
    while True:
        try:
            with own.without_waiting:
                return own.read(offset, bytes_max, own.log_end_offset)
        except NotResident as missing:
            yield missing.file_range


class _Loader:
    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self._latest: dict[bytes, bytes | None] = {}  # in the order of the last records

    def take(self, header: BatchHeader, batch: memoryview) -> Steps:
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None:
                yield from self.apply_latest()
                self._machine.apply_marker(header.producer_id, not marker.is_abort)
            return
        try:
            if header.is_transactional:
                yield from self.apply_latest()
                for record in records_of(batch):
                    if record.key is not None:
                        self._machine.apply(StateRecord(record.key, record.value), header.producer_id)
            else:
                self._keep(batch)
        except CorruptRecords as error:
            log.warning("skipped a batch that cannot be read: %s", error)
        yield None

    def _keep(self, batch: memoryview) -> None:
        latest = self._latest
        for record in records_of(batch):
            if record.key is not None:
                latest.pop(record.key, None)
                latest[record.key] = record.value

    def apply_latest(self) -> Steps:
        latest, self._latest = self._latest, {}
        for number, (key, value) in enumerate(latest.items()):
            self._machine.apply(StateRecord(key, value))
            if number % _APPLIED_AT_ONCE == 0:
                yield None
