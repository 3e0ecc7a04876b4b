"""What consumers do, whatever their shell is (`consumer`, `aio`): places, groups, commits, records.

Fetches go ahead while the caller works; all of it happens inside the caller's calls. An `await` never sits
between reading a state and writing it: what was looked up is dropped when somebody sought elsewhere.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ottla.client import admin_groups, admin_offsets, plugins
from ottla.client.admin_values import CommittedOffset, GroupMetadata
from ottla.client.assignors import Assignor, named
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker
from ottla.client.columns import ROWS_MAX, as_table
from ottla.client.commits import OnCommit
from ottla.client.consumer_places import ConsumerPlaces
from ottla.client.decoding import PLUGGABLE, Decoding
from ottla.client.errors import (
    ClientError,
    Closed,
    InvalidSetting,
    OffsetOutOfRange,
    broker_error,
)
from ottla.client.fetched import ConsumedRecord
from ottla.client.fetcher import Fetcher, FetchRules
from ottla.client.group import Group, MakePulse, RebalanceListener
from ottla.client.offset_spec import End, Start, parse_reset
from ottla.client.reader import Committed, Reader
from ottla.client.server_group import ServerGroup
from ottla.client.settings import CONSUMER_SETTINGS, bootstrap_of, load
from ottla.model.config_types import TypedValues
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import FETCH
from ottla.protocol.fields import Message
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.records.columns import Columns, checked_names

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")

_VERSION_WITHOUT_IDS = 12
_VERSION_END = 32_767
_TURN_MS_MAX = 1_000
_GROUP_TURN_MS = 200  # how soon what the heartbeats brought is acted upon
_LOOKUP_MS_MIN = 1_000  # what a poll without patience may still take to find out where to start

_OF_THE_CLASSIC_PROTOCOL = frozenset(
    {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"}
)

Commitable = Mapping[TopicPartition, int | CommittedOffset]


class ConsumerCalls(ConsumerPlaces):
    def __init__(
        self,
        bootstrap: str | Sequence[str],
        strategy: Sequence[str | Assignor],
        settings: dict[str, object],
        make_cluster: type[Cluster],
        make_pulse: MakePulse,
    ) -> None:
        given = dict(settings)
        bootstrap = bootstrap_of(bootstrap, given)
        plugged = plugins.taken(given, *PLUGGABLE)
        configs = plugins.configs_of(given, plugged)
        loaded = load(given, CONSUMER_SETTINGS)
        _check_protocol(loaded, given, strategy)
        assignors = named(strategy or loaded.texts("partition.assignment.strategy"))
        self._decoding = Decoding(plugged, configs)
        auto_create = loaded.flag("allow.auto.create.topics")
        self._cluster = make_cluster(bootstrap, loaded, auto_create=auto_create)
        self._reset = parse_reset(loaded.text("auto.offset.reset"))
        self._rules = _rules(loaded)
        self._fetcher = Fetcher(self._rules, self._cluster.backoff, self._reset)
        self._timeout_ms = loaded.integer("default.api.timeout.ms")
        self._request_timeout_ms = loaded.integer("request.timeout.ms")
        self._poll_records_max = loaded.integer("max.poll.records")
        self._is_closed = False
        self._is_closing = False  # a poll that is under way must end
        self._handing: deque[ConsumedRecord] = deque()  # polled by `one`, and not handed out yet
        self._columns: Columns | None = None  # those of the last poll_arrow
        self._group: Group | None = None
        group_id = loaded.text_or_none("group.id")
        if group_id is not None:
            kind = ServerGroup if loaded.text("group.protocol") == "consumer" else Group
            self._group = kind(self._cluster, loaded, group_id, assignors, self, make_pulse)
            self._group.commits.on_commit = self._decoding.interceptors.on_commit

    async def close(self) -> None:
        """Commits (with enable.auto.commit) and leaves the group."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._group is not None:
                await self._group.close()
        finally:
            self._cluster.close()
            self._decoding.close()

    # -- the group -----------------------------------------------------------------------------------------

    def subscribe(
        self, topics: Iterable[str] | re.Pattern[str], listener: RebalanceListener | None = None
    ) -> None:
        """Shares these topics (or all that the pattern finds) with the other members of the group."""
        if isinstance(topics, str):
            raise TypeError("subscribe takes a list of topics or a compiled pattern, not one name")
        group = self._needed_group()
        if group.membership is None and self._fetcher.readers:
            raise ClientError("partitions are assigned by hand already", "use another consumer")
        if not isinstance(topics, re.Pattern):
            topics = list(topics)
            self._decoding.know(topics)
        group.subscribe(topics, listener)

    def listen(self, listener: RebalanceListener) -> None:
        """Another listener for the subscription that there is; without a group there is nothing to hear."""
        if self._group is not None:
            self._group.listener = listener

    async def unsubscribe(self) -> None:
        """Commits, leaves the group, and reads nothing any more."""
        if self._group is not None:
            await self._group.unsubscribe()
        self.take_seat(())

    async def commit(self, offsets: Commitable | None = None) -> None:
        """Where to go on after a restart: the given offsets, or behind all records that `poll` has returned.

        Returns when the broker has them; raises CommitFailed when the partitions are no longer ours.
        """
        await self._needed_group().commits.commit(self._commits(offsets), self._deadline_ms())

    async def commit_async(
        self, offsets: Commitable | None = None, on_commit: OnCommit | None = None
    ) -> None:
        """The same without waiting; `on_commit(offsets, error)` runs in a later `poll`."""
        group = self._needed_group()
        await group.coordinator.find(self._deadline_ms())
        group.commits.commit_async(self._commits(offsets), on_commit)

    async def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """What the group has committed; partitions without a commit are left out."""
        group_id = self._needed_group().id
        return await admin_groups.fetch_offsets(
            self._cluster, group_id, tuple(partitions), self._deadline_ms(), require_stable=True
        )

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for `Producer.send_offsets_to_transaction`."""
        group = self._needed_group()
        member = group.membership
        if member is None:
            return GroupMetadata(group.id)
        return GroupMetadata(group.id, member.generation, member.member_id, group.rules.instance_id)

    def take_seat(self, partitions: Iterable[TopicPartition]) -> None:
        """For the group: reads exactly these, new ones from what was committed."""
        known = self._fetcher.readers
        self._read([known.get(target) or Reader(target, Committed()) for target in partitions])

    def positions(self) -> dict[TopicPartition, CommittedOffset]:
        """Behind what `poll` has returned, of every partition that has begun."""
        readers = self._fetcher.readers.values()
        places = {each.target: each.offset for each in readers if each.offset is not None}
        places |= self._next_to_hand()
        return {target: CommittedOffset(offset) for target, offset in places.items()}

    def _commits(self, offsets: Commitable | None) -> dict[TopicPartition, CommittedOffset]:
        if offsets is None:
            return self.positions()
        return {
            target: CommittedOffset(each) if isinstance(each, int) else each
            for target, each in offsets.items()
        }

    @property
    def commits_itself(self) -> bool:
        """Whether `poll` commits (enable.auto.commit)."""
        return self._group is not None and self._group.commits_itself

    @property
    def resets_never(self) -> bool:
        """Whether an offset that is not there is an error (auto.offset.reset=none)."""
        return self._reset is None

    @property
    def reads_committed(self) -> bool:
        """Whether open and aborted transactions are hidden (isolation.level)."""
        return self._rules.read_committed

    @property
    def timeout_ms(self) -> int:
        """How long one call may take (default.api.timeout.ms)."""
        return self._timeout_ms

    @property
    def problem(self) -> ClientError | None:
        """What keeps records from coming, as far as is known; None: there may simply be none."""
        in_group = None if self._group is None else self._group.problem
        return self._fetcher.trouble or self._cluster.last_problem or in_group

    # -- records -------------------------------------------------------------------------------------------

    async def one(self, timeout: float = 0.0) -> ConsumedRecord | None:
        """The next record. Commits and positions know which records were handed out and which were not."""
        if not self._handing:
            polled = await self.poll(timeout)
            self._handing.extend(polled)  # a rebalance within `poll` has put another deque there
        return self._handing.popleft() if self._handing else None

    async def poll(self, timeout: float = 0.0) -> list[ConsumedRecord]:
        """The next records, as soon as there are some; none when `timeout` (seconds) is over."""
        if self._handing:
            handed, self._handing = list(self._handing), deque()
            return handed
        return await self._poll(timeout, lambda: self._decoded(self._fetcher.collect(self._poll_records_max)))

    async def poll_arrow(
        self, timeout: float = 0.0, columns: Sequence[str] | None = None, rows_max: int = ROWS_MAX
    ) -> pyarrow.Table:
        """The same as a table of these columns (None: all; see `records.columns`), for many records at once.

        `rows_max` takes the place of max.poll.records. Places, groups and commits do not care which is used.
        """
        wanted = (checked_names(columns), rows_max)
        if self._columns is None or (self._columns.names, self._columns.rows_max) != wanted:
            self._columns = Columns(*wanted)
        await self.poll_into(self._columns, timeout)
        return as_table([self._columns.take()], self._columns)

    async def poll_into(self, columns: Columns, timeout: float = 0.0) -> int:
        """The same as rows behind those that `columns` has; how many it has then."""
        before = columns.rows

        def fill() -> bool:
            self._fetcher.fill(columns)
            return columns.rows > before or columns.is_full

        await self._poll(timeout, fill)
        return columns.rows

    async def _poll(self, timeout: float, collect: Callable[[], T]) -> T:
        if self._is_closed:
            raise Closed("the consumer is closed")
        deadline_ms = self._cluster.now_ms() + round(timeout * 1000)
        waited = False
        while True:
            if self._is_closing:
                raise Closed("the consumer is being closed")
            if self._group is not None:
                await self._group.turn(self._cluster.now_ms())
            await self._fetch(deadline_ms)
            try:
                found = collect()
            except OffsetOutOfRange:
                raise await self._out_of_range() from None
            now_ms = self._cluster.now_ms()
            if found:
                self._send_fetches()  # the next answer travels while the caller works; nothing may fail here
                return found
            if self._fetcher.is_over or (waited and now_ms >= deadline_ms):
                return found
            wait_ms = min(
                self._cluster.tick(now_ms),
                self._fetcher.next_ms(now_ms, self._idle_ms(now_ms)),
                max(deadline_ms - now_ms, 0),
            )
            await self._cluster.turn(wait_ms)
            waited = True

    async def _out_of_range(self) -> ClientError:
        """What a partition has instead of the offset that it was asked for."""
        (reader, *_) = [each for each in self._fetcher.readers.values() if each.problem is not None]
        target, offset = reader.target, reader.offset
        assert reader.problem is not None
        assert offset is not None
        bounds = []
        for place in (Start(), End()):
            try:
                bounds.append(
                    (await admin_offsets.resolve(self._cluster, {target: place}, self._deadline_ms()))[target]
                )
            except ClientError:
                return reader.problem
        return OffsetOutOfRange.of(target, offset, *bounds)

    def _decoded(self, records: list[ConsumedRecord]) -> list[ConsumedRecord]:
        """As users want them. One that cannot be read is raised when it is the first; until then it waits."""
        decoded, failure = self._decoding.decode(records)
        if failure is not None:
            first: dict[TopicPartition, int] = {}
            for record in records[len(decoded) :]:
                first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
            for target, offset in first.items():
                self._fetcher.readers[target].seek(offset)
            if not decoded:
                raise failure
        if decoded and self._decoding.interceptors:
            decoded = self._decoding.interceptors.on_consume(decoded)
        return decoded

    def _idle_ms(self, now_ms: int) -> int:
        if self._group is None:
            return _TURN_MS_MAX
        return self._group.next_ms(now_ms, _GROUP_TURN_MS)

    async def _fetch(self, deadline_ms: int) -> None:
        now_ms = self._cluster.now_ms()
        if any(reader.offset is None for reader in self._fetcher.readers.values()):
            await self._try_look_up(max(deadline_ms, now_ms + _LOOKUP_MS_MIN))
        self._raise_problems()
        self._send_fetches()

    def _send_fetches(self) -> None:
        now_ms = self._cluster.now_ms()
        if self._fetcher.wants_metadata:
            self._fetcher.wants_metadata = False
            self._cluster.metadata.ask_again()
        self._cluster.tick(now_ms)
        for broker, request, turns in self._fetcher.requests(self._cluster.metadata.view, now_ms):
            self._send(broker, request, turns)

    def _send(self, broker: Broker, request: FetchRequest, turns: dict[TopicPartition, int]) -> None:
        names = dict(self._cluster.metadata.view.names)

        def take(result: Message | ClientError, _version: int) -> None:
            now_ms = self._cluster.now_ms()
            if isinstance(result, ClientError):
                self._fetcher.lost(broker.id, turns, result, now_ms)
                return
            assert isinstance(result, FetchResponse)
            self._fetcher.take(broker.id, result, turns, names, now_ms)

        self._cluster.send(
            broker.address,
            FETCH,
            request,
            take,
            timeout_ms=self._request_timeout_ms + request.max_wait_ms,
            version_max=_VERSION_END if self._fetcher.names_ids(broker.id) else _VERSION_WITHOUT_IDS,
            purpose="fetch",
        )

    def _raise_problems(self) -> None:
        """A topic that is refused, as opposed to one that is on its way."""
        for topic, code in self._cluster.metadata.problems.items():
            error = broker_error(code, f"topic {topic!r}")
            if not error.retriable:
                raise error


def _check_protocol(loaded: TypedValues, given: Mapping[str, object], strategy: Sequence[object]) -> None:
    """Settings that the brokers decide in groups of the new protocol would have no effect."""
    if loaded.text("group.protocol") == "classic":
        return
    ours = {name.replace("_", ".") for name in given} & _OF_THE_CLASSIC_PROTOCOL
    if strategy:
        ours.add("strategy")
    if ours:
        raise InvalidSetting(
            f"{', '.join(sorted(ours))}: with group.protocol=consumer the brokers decide this",
            "leave it out; group.remote.assignor names one of their assignors",
        )


def _rules(loaded: TypedValues) -> FetchRules:
    return FetchRules(
        bytes_min=loaded.integer("fetch.min.bytes"),
        wait_ms=loaded.integer("fetch.max.wait.ms"),
        bytes_max=loaded.integer("fetch.max.bytes"),
        partition_bytes_max=loaded.integer("max.partition.fetch.bytes"),
        read_committed=loaded.text("isolation.level") == "read_committed",
        check_crcs=loaded.flag("check.crcs"),
        rack=loaded.text("client.rack"),
        replica_age_ms=loaded.integer("metadata.max.age.ms"),
    )
