"""Judges whether records that a query was to read are gone: by retention, or with their topic. Pure.

What is found is raised as DataLoss, or logged and stepped over when the user said so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ottla.model.topics import TopicPartition
from ottla.spark.errors import DataLoss
from ottla.spark.offsets import Offsets

log = logging.getLogger(__name__)


class LossPolicy:
    def __init__(self, *, fails: bool) -> None:
        self._fails = fails

    def report(self, text: str) -> None:
        if self._fails:
            raise DataLoss(text)
        log.warning("%s; going on, since failOnDataLoss is false", text)

    def gone_partitions(
        self, start: Mapping[TopicPartition, int], there: Mapping[TopicPartition, int]
    ) -> None:
        gone = sorted(set(start) - set(there))
        if gone:
            self.report(f"{_listed(gone)} is gone: the topic was deleted, or has fewer partitions now")

    def begun(
        self,
        start: Mapping[TopicPartition, int],
        first: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
    ) -> Offsets:
        """Where to go on in the partitions that are there now, whose first and end offsets are given."""
        found: Offsets = {}
        for target in end:
            if target not in start:
                if first[target] > 0:
                    self.report(f"new partition {target} starts at {first[target]} and not at 0")
                found[target] = first[target]
            elif start[target] > end[target]:
                self.report(
                    f"{target} ends at {end[target]}, before the query's offset {start[target]}: "
                    "the topic was created anew, or was truncated"
                )
                found[target] = first[target]
            else:
                found[target] = self.still_there(target, start[target], first[target])
        return found

    def asked(
        self,
        start: Mapping[TopicPartition, int],
        first: Mapping[TopicPartition, int],
        end: Mapping[TopicPartition, int],
    ) -> Offsets:
        """The same for a batch query: it never reads what is before the offsets that it asked for."""
        found: Offsets = {}
        for target, offset in start.items():
            if offset > end[target]:
                self.report(f"{target} ends at {end[target]}, the query was to start at {offset}")
            found[target] = self.still_there(target, offset, first[target])
        return found

    def still_there(self, target: TopicPartition, offset: int, first_offset: int) -> int:
        """Where to read of a partition that begins at `first_offset`, of one that has not ended before."""
        if offset < first_offset:
            self.report(
                f"{target} starts at {first_offset} now, the query is at {offset}: "
                "retention or DeleteRecords removed what is between"
            )
        return max(offset, first_offset)

    def reachable(self, end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> Offsets:
        """Ends that a batch query asked for, within what is there."""
        found: Offsets = {}
        for target, offset in end.items():
            if offset > latest[target]:
                self.report(f"{target} ends at {latest[target]}, the query was to read up to {offset}")
            found[target] = min(offset, latest[target])
        return found

    def re_created(self, topic: str, known_id: str, current_id: str) -> None:
        if known_id != current_id:
            self.report(
                f"topic {topic} was deleted and created anew: its id was {known_id} and is {current_id} now"
            )


def _listed(targets: list[TopicPartition]) -> str:
    shown = ", ".join(str(target) for target in targets[:5])
    return shown if len(targets) <= 5 else f"{shown} and {len(targets) - 5} more"
