"""What can happen to a partition that somebody may be waiting for."""

from __future__ import annotations

from enum import IntEnum


class Event(IntEnum):
    LOG_END = 0  # records were appended (followers wait for it)
    HIGH_WATERMARK = 1  # more became visible, or an acks=all write became safe
    LAST_STABLE = 2  # a transaction ended: more became visible to read_committed
    LOG_START = 3  # DeleteRecords or retention moved the start
    LEADERSHIP = 4  # this broker began or ceased to lead
    DELETION = 5  # the topic is gone
    STORAGE_FAILURE = 6  # its files are not to be trusted any more
