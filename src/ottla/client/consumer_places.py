"""Which partitions a consumer reads, and where: assigned, sought, looked up. A part of `consumer_calls`.

What was looked up is dropped when somebody sought elsewhere meanwhile: no `await` sits between reading a
place and writing it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from ottla.client import admin_groups, admin_offsets
from ottla.client.admin_values import FoundOffset
from ottla.client.cluster import Cluster
from ottla.client.decoding import Decoding
from ottla.client.errors import BrokerError, ClientError, ConnectionFailed, NoOffset, TimedOut
from ottla.client.fetched import ConsumedRecord
from ottla.client.fetcher import Fetcher, FetchRules
from ottla.client.group import Group
from ottla.client.offset_spec import End, OffsetSpec, Start, parse_offset
from ottla.client.reader import Committed, Reader
from ottla.model.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from ottla.model.topics import TopicPartition
from ottla.records.columns import OFFSET_END

Place = int | str | OffsetSpec


class ConsumerPlaces:
    # Set by ConsumerCalls:
    _cluster: Cluster
    _decoding: Decoding
    _fetcher: Fetcher
    _group: Group | None
    _handing: deque[ConsumedRecord]
    _reset: OffsetSpec | None
    _rules: FetchRules
    _timeout_ms: int

    def _needed_group(self) -> Group:
        if self._group is None:
            raise ClientError("this consumer has no group", "give it a group.id")
        return self._group

    def _next_to_hand(self) -> dict[TopicPartition, int]:
        return {
            TopicPartition(record.topic, record.partition): record.offset
            for record in reversed(self._handing)
        }

    def _hand_no_more(self, keep: Callable[[TopicPartition], bool]) -> None:
        self._handing = deque(
            record for record in self._handing if keep(TopicPartition(record.topic, record.partition))
        )

    # -- places --------------------------------------------------------------------------------------------

    def assign(
        self,
        partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Place],
        stops: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Reads exactly these from now on, without sharing them with a group.

        From their places; without one from what the group has committed (where there is a group.id), or from
        where auto.offset.reset says. A partition that was assigned before and has no place goes on as it was.
        Of a partition with a stop only what is before that offset is read.
        """
        if self._group is not None and self._group.membership is not None:
            raise ClientError("topics are subscribed already", "unsubscribe first, or use another consumer")
        places = partitions if isinstance(partitions, Mapping) else {}
        targets = [TopicPartition._make(target) for target in partitions]
        self._decoding.know(target.topic for target in targets)
        readers = []
        for target in targets:
            reader = self._fetcher.readers.get(target)
            if target in places:
                reader = Reader(target, self._parsed(places[target]))
            elif reader is None:
                reader = Reader(target, Committed() if self._group is not None else self._start(target))
            reader.stop_offset = OFFSET_END if stops is None else stops.get(target, OFFSET_END)
            readers.append(reader)
        self._read(readers)

    def _read(self, readers: list[Reader]) -> None:
        self._fetcher.assign(readers)
        self._hand_no_more(self._fetcher.readers.__contains__)
        self._cluster.metadata.want({reader.target.topic for reader in readers})

    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._fetcher.readers)

    def seek(self, partition: TopicPartition, place: Place) -> None:
        self._reader(partition).seek(self._parsed(place))
        self._hand_no_more(lambda target: target != partition)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """These, or all that are assigned."""
        for partition in partitions or self.assignment():
            self.seek(partition, Start())

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        for partition in partitions or self.assignment():
            self.seek(partition, End())

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that `poll` will return."""
        reader = self._reader(partition)
        if reader.offset is None:
            await self._look_up(self._deadline_ms())
        assert reader.offset is not None
        return self._next_to_hand().get(reader.target, reader.offset)

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets that the partitions still hold."""
        return await self._ends(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the partitions end for this consumer: with read_committed, the last stable offsets."""
        return await self._ends(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first records of these times or later; None where there is none."""
        for target, timestamp_ms in timestamps_ms.items():
            if timestamp_ms < 0:
                raise ValueError(f"{target}: {timestamp_ms} is no timestamp in milliseconds since 1970")
        found = await admin_offsets.list_offsets(
            self._cluster, timestamps_ms, self._deadline_ms(), read_committed=self._rules.read_committed
        )
        return {target: None if each.offset is None else each for target, each in found.items()}

    async def lag(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """How many offsets these (or all that are assigned) are behind their ends, as brokers say now."""
        targets = partitions or self.assignment()
        ends = await self.end_offsets(targets)
        return {target: max(ends[target] - await self.position(target), 0) for target in targets}

    async def _ends(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        return await admin_offsets.ends(
            self._cluster,
            partitions,
            timestamp,
            self._deadline_ms(),
            read_committed=self._rules.read_committed,
        )

    def end_offset(self, partition: TopicPartition) -> int | None:
        """Where the partition ended, as the last answer told; None: none has come yet."""
        return self._reader(partition).end_offset

    def at_end(self, partition: TopicPartition) -> bool:
        """Whether the reader has come to the end that the last answer told."""
        reader = self._reader(partition)
        return (
            reader.end_offset is not None and reader.offset is not None and reader.offset >= reader.end_offset
        )

    def pause(self, *partitions: TopicPartition) -> None:
        """Their records wait until `resume`; what is in memory stays there."""
        for partition in partitions or self.assignment():
            self._reader(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions or self.assignment():
            self._reader(partition).is_paused = False

    # -- lookups -------------------------------------------------------------------------------------------

    async def _try_look_up(self, deadline_ms: int) -> None:
        try:
            await self._look_up(deadline_ms)
        except (ConnectionFailed, TimedOut, BrokerError) as error:
            if not error.retriable:
                raise
            for reader in self._fetcher.readers.values():  # the next poll tries again
                if reader.place is not None:
                    reader.trouble = error

    async def _look_up(self, deadline_ms: int) -> None:
        """Finds the offsets of places that are not offsets yet."""
        searching = {
            reader: reader.place for reader in self._fetcher.readers.values() if reader.place is not None
        }
        resuming = [reader.target for reader, place in searching.items() if isinstance(place, Committed)]
        commits = {}
        if resuming:
            commits = await admin_groups.fetch_offsets(
                self._cluster, self._needed_group().id, resuming, deadline_ms, require_stable=True
            )
        places: dict[TopicPartition, OffsetSpec] = {}
        for reader, place in searching.items():
            if not isinstance(place, Committed):
                places[reader.target] = place
            elif reader.target not in commits:
                places[reader.target] = self._start(reader.target)
        offsets = await admin_offsets.resolve(
            self._cluster, places, deadline_ms, read_committed=self._rules.read_committed
        )
        offsets |= {target: each.offset for target, each in commits.items()}
        for reader, place in searching.items():
            if reader.place is place:  # nobody sought elsewhere meanwhile
                reader.seek(offsets[reader.target])

    def _start(self, target: TopicPartition) -> OffsetSpec:
        if self._reset is None:
            raise NoOffset(
                f"{target} has no place to start from, and auto.offset.reset is none",
                "give one (assign, seek), commit one, or set auto.offset.reset",
            )
        return self._reset

    def _deadline_ms(self) -> int:
        return self._cluster.now_ms() + self._timeout_ms

    def _parsed(self, place: Place) -> int | OffsetSpec:
        if isinstance(place, int) and place >= 0:
            return place
        return parse_offset(place, self._cluster.clock.wall_ms())

    def _reader(self, partition: TopicPartition) -> Reader:
        reader = self._fetcher.readers.get(partition)
        if reader is None:
            raise ClientError(
                f"{TopicPartition(*partition)} is not assigned to this consumer", "assign it first"
            )
        return reader
