"""One range of offsets as Arrow record batches, in a worker of an executor.

The consumer stays, with its connections, for the ranges of the next micro-batch (`connections`). It fetches
ahead, so the next answer travels while Spark works on this one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ottla.client.errors import OffsetOutOfRange
from ottla.model.limits import MIB
from ottla.records.columns import Columns
from ottla.spark.connections import consumer_of
from ottla.spark.errors import JobError
from ottla.spark.loss import LossPolicy
from ottla.spark.options import ReadOptions
from ottla.spark.ranges import OffsetRange

if TYPE_CHECKING:
    from pyarrow import RecordBatch

ROWS_MAX = 50_000  # of one record batch: below 10,000 the JVM's work per batch shows, above nothing is gained
BYTES_MAX = 2 * MIB  # of one column of it: more is memory that both sides get anew from the system each time
_POLL_SECONDS = 1.0


def read_range(options: ReadOptions, range_: OffsetRange) -> Iterator[RecordBatch]:
    if range_.size <= 0:
        return iter(())
    columns = Columns(options.columns, min(ROWS_MAX, range_.size), BYTES_MAX)
    if options.path is not None:
        from ottla.spark.files import read_file_range

        return read_file_range(options, range_, columns)
    return _fetch(options, range_, columns)


def _fetch(options: ReadOptions, range_: OffsetRange, columns: Columns) -> Iterator[RecordBatch]:
    consumer = consumer_of(options.bootstrap, options.client)
    target, end_offset = range_.target, range_.end_offset
    consumer.assign({target: range_.start_offset}, {target: end_offset})
    heard = time.monotonic()
    while (position := consumer.position(target)) < end_offset:
        try:
            consumer.poll_into(columns, _POLL_SECONDS)
        except OffsetOutOfRange as error:
            LossPolicy(fails=options.fail_on_data_loss).report(
                f"{target} no longer has offset {position}, which the query was to read up to {end_offset}"
            )
            if error.latest is not None:
                end_offset = min(end_offset, error.latest)  # of a topic that is shorter now
            consumer.assign({target: "start"}, {target: end_offset})
        if columns.is_full:
            yield columns.take()
        if consumer.position(target) > position:
            heard = time.monotonic()
        elif (time.monotonic() - heard) * 1000 > options.poll_timeout_ms:
            problem = consumer.problem
            raise JobError(
                f"{target} gave nothing at {position} for {options.poll_timeout_ms} ms, its range ends "
                f"at {end_offset}{f' ({problem.text})' if problem else ''}: see whether its broker runs, or "
                f"raise kafkaConsumer.pollTimeoutMs"
            )
    if columns.rows:
        yield columns.take()
