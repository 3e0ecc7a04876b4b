"""The numbers that get confused, told apart by type."""

from __future__ import annotations

from typing import NewType

Offset = NewType("Offset", int)
"""A record's number in its partition."""

Position = NewType("Position", int)
"""A byte's place in a file."""

UNKNOWN_OFFSET = Offset(-1)

# ListOffsets asks by timestamp; these negative ones are questions of their own.
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3  # KIP-734
EARLIEST_LOCAL_TIMESTAMP = -4  # KIP-405
LATEST_TIERED_TIMESTAMP = -5  # KIP-1005
EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6  # KIP-1023

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
