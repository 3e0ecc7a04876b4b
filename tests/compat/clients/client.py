"""The one face that the tests see of every stock client: write these records, read that many back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from compat.cases import Lane
from compat.record import Delivered, Receipt, Record

# No single write or read of the suites may take longer than this.
PATIENCE_S = 45.0


class Client(Protocol):
    name: str
    # Whether its producer takes a timestamp from the caller.
    chooses_timestamps: bool

    def unwritable(self, record: Record) -> str | None:
        """Why this client's own API cannot write the record (None: it can)."""

    def write(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], lane: Lane
    ) -> list[Receipt]:
        """Write in order to one partition and wait for every acknowledgement that `lane.acks` gives."""

    def read(self, bootstrap: str, topic: str, counts: Mapping[int, int]) -> dict[int, list[Delivered]]:
        """Read each partition from its beginning until it gave as many records as `counts` says."""

    def view(self, record: Delivered) -> Delivered:
        """The record as far as this client can show it."""
