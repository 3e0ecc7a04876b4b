"""What verification can find: where, what is wrong, and what helps."""

from __future__ import annotations

from enum import StrEnum

from ottla.model.values import dataclass


class FindingKind(StrEnum):
    TORN_TAIL = "torn tail"  # nothing whole follows it in the log
    CORRUPT_MIDDLE = "corrupt middle"  # whole batches follow it
    MISSING_RECORDS = "missing records"  # a segment does not begin where the one before it ends
    BROKEN_RECORDS = "broken records"  # the checksum is right, the records are not
    INDEX = "index"
    TXN_INDEX = "transaction index"
    SNAPSHOT = "producer snapshot"
    LEADER_EPOCHS = "leader epochs"
    CHECKPOINT = "checkpoint"
    METADATA = "metadata"
    LEFTOVER = "leftover"
    UNREADABLE = "unreadable"


_CURES = {
    FindingKind.TORN_TAIL: "start the broker, or run `ottla log repair`: both cut it off",
    FindingKind.CORRUPT_MIDDLE: (
        "restore the file from a backup or a replica; `ottla log repair` with --drop-corrupt or --cut-at "
        "gives the damaged part up"
    ),
    FindingKind.MISSING_RECORDS: (
        "restore the file from a backup or a replica; `ottla log repair` with --drop-corrupt gives these "
        "records up, and consumers pass over their offsets without a word"
    ),
    FindingKind.BROKEN_RECORDS: "its producer sent it so; consumers have to skip these offsets",
    FindingKind.INDEX: "`ottla log repair` rebuilds it from the log",
    FindingKind.TXN_INDEX: "`ottla log repair` rebuilds it from the log",
    FindingKind.SNAPSHOT: "`ottla log repair` puts it aside; the next start rebuilds it from the log",
    FindingKind.LEADER_EPOCHS: "`ottla log repair` rebuilds it from the log",
    FindingKind.CHECKPOINT: "`ottla log repair` puts it right from the logs",
    FindingKind.METADATA: "restore the file from a backup",
    FindingKind.LEFTOVER: "start the broker: it finishes what was interrupted",
    FindingKind.UNREADABLE: "look for failures of the disk, and for the file's owner and permissions",
}


@dataclass(slots=True, frozen=True)
class Finding:
    kind: FindingKind
    path: str
    problem: str
    position: int | None = None  # in the file, in bytes
    offset: int | None = None  # of the first record it concerns

    @property
    def cure(self) -> str:
        return _CURES[self.kind]
