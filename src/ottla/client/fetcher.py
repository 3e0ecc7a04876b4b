"""Where a consumer is in each of its partitions, what to fetch next, and what has come. Pure.

A partition is fetched ahead of its reader: while one answer is being read, the next is on its way. Each
broker has one request in flight at a time, as its session asks; a partition that was paused, sought or taken
away while its answer travelled simply ignores it (its `turn` has moved on).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.client.backoff import Backoff
from ottla.client.cluster_view import Broker, ClusterView
from ottla.client.errors import ClientError, broker_error, error_code
from ottla.client.fetch_session import FetchSession, Wanted
from ottla.client.fetched import ConsumedRecord, Fetched
from ottla.client.offset_spec import OffsetSpec
from ottla.client.reader import Reader
from ottla.model.errors import ErrorCode
from ottla.model.topics import TopicId, TopicPartition
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from ottla.records.columns import Columns

_STALE_LEADER = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class FetchRules:
    bytes_min: int
    wait_ms: int
    bytes_max: int
    partition_bytes_max: int
    read_committed: bool
    check_crcs: bool
    rack: str  # where this client is; a leader may know a replica there (KIP-392)
    replica_age_ms: int  # how long that replica is asked before the leader is asked again


class Fetcher:
    def __init__(self, rules: FetchRules, backoff: Backoff, reset: OffsetSpec | None) -> None:
        self.readers: dict[TopicPartition, Reader] = {}
        self.wants_metadata = False
        self._rules = rules
        self._backoff = backoff
        self._reset = reset  # where to go when an offset is not there; None: tell the user
        self._sessions: dict[int, FetchSession] = {}
        self._busy: set[int] = set()  # brokers with a request in flight
        self._order: deque[TopicPartition] = deque()  # whose records are taken next

    # -- the assignment ------------------------------------------------------------------------------------

    def assign(self, readers: Iterable[Reader]) -> None:
        self.readers = {reader.target: reader for reader in readers}
        self._order = deque(self.readers)

    # -- requests ------------------------------------------------------------------------------------------

    def requests(
        self, view: ClusterView, now_ms: int
    ) -> list[tuple[Broker, FetchRequest, dict[TopicPartition, int]]]:
        """What to ask of whom, and the turns of the partitions in each request."""
        by_broker: dict[int, dict[TopicPartition, Wanted]] = {}
        full: set[int] = set()
        for reader in self.readers.values():
            source = self._source(reader, view, now_ms)
            if not reader.is_fetchable(now_ms):
                # A request without this partition could wait at the broker while its reader runs dry.
                if source is not None and reader.is_full:
                    full.add(source.id)
                continue
            partition = view.partition(reader.target)
            if partition is None or source is None:
                self.wants_metadata = True
                reader.trouble = view.leaderless(reader.target)
                continue
            if source.id in self._busy:
                continue
            assert reader.fetch_offset is not None
            by_broker.setdefault(source.id, {})[reader.target] = Wanted(
                view.topic_id(reader.target.topic),
                reader.fetch_offset,
                partition.leader_epoch,
                self._rules.partition_bytes_max,
            )
        return [
            self._request(view.brokers[broker_id], wanted)
            for broker_id, wanted in by_broker.items()
            if broker_id not in full
        ]

    @staticmethod
    def _source(reader: Reader, view: ClusterView, now_ms: int) -> Broker | None:
        """Who is asked for a partition: its leader, or for a while the replica that the leader has named."""
        if reader.replica is not None:
            near = view.brokers.get(reader.replica)
            if near is not None and now_ms < reader.replica_until_ms:
                return near
            reader.replica = None
        return view.leader(reader.target)

    def _request(
        self, broker: Broker, wanted: dict[TopicPartition, Wanted]
    ) -> tuple[Broker, FetchRequest, dict[TopicPartition, int]]:
        session = self._sessions.setdefault(broker.id, FetchSession())
        topics, forgotten = session.next_request(wanted)
        request = FetchRequest(
            max_wait_ms=self._rules.wait_ms,
            min_bytes=self._rules.bytes_min,
            max_bytes=self._rules.bytes_max,
            isolation_level=int(self._rules.read_committed),
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=topics,
            forgotten_topics_data=forgotten,
            rack_id=self._rules.rack,
        )
        turns = {}
        for target in wanted:
            reader = self.readers[target]
            reader.in_flight = True
            turns[target] = reader.turn
        self._busy.add(broker.id)
        return broker, request, turns

    def names_ids(self, broker_id: int) -> bool:
        """Whether the ids of all topics of the broker's session are known."""
        return self._sessions[broker_id].names_ids

    # -- answers -------------------------------------------------------------------------------------------

    def lost(self, broker_id: int, turns: dict[TopicPartition, int], error: ClientError, now_ms: int) -> None:
        """No answer came."""
        self._busy.discard(broker_id)
        self._sessions.pop(broker_id, None)
        self.wants_metadata = True
        for reader in self._still_waiting(turns):
            reader.replica = None
            self._pause(reader, error, now_ms)

    def take(
        self,
        broker_id: int,
        answer: FetchResponse,
        turns: dict[TopicPartition, int],
        names: dict[TopicId, str],
        now_ms: int,
    ) -> None:
        self._busy.discard(broker_id)
        session = self._sessions[broker_id]
        session.answered(answer.error_code, answer.session_id)
        if answer.error_code:
            self.wants_metadata = True
        for topic in answer.responses:
            name = topic.topic or names.get(topic.topic_id, "")
            for partition in topic.partitions:
                target = TopicPartition(name, partition.partition_index)
                reader = self.readers.get(target)
                if reader is not None and turns.get(target) == reader.turn:
                    self._take_partition(reader, partition, session, now_ms)
        for reader in self._still_waiting(turns):
            if answer.error_code:
                self._pause(reader, broker_error(answer.error_code, str(reader.target)), now_ms)
            elif not reader.failures:  # nothing new, which is not told of each partition
                reader.trouble = None

    def _still_waiting(self, turns: dict[TopicPartition, int]) -> list[Reader]:
        """The readers of a request that is over, whose places nobody changed meanwhile."""
        readers = [self.readers[target] for target in turns if target in self.readers]
        waiting = [reader for reader in readers if turns[reader.target] == reader.turn]
        for reader in waiting:
            reader.in_flight = False
        return waiting

    def _take_partition(
        self, reader: Reader, answer: PartitionData, session: FetchSession, now_ms: int
    ) -> None:
        if answer.error_code:
            session.moved(reader.target)
            self._refused(reader, answer.error_code, now_ms)
            return
        reader.failures = 0
        reader.trouble = None
        committed = self._rules.read_committed
        reader.end_offset = answer.last_stable_offset if committed else answer.high_watermark
        if answer.preferred_read_replica >= 0:
            reader.replica = answer.preferred_read_replica
            reader.replica_until_ms = now_ms + self._rules.replica_age_ms
            return
        if not answer.records:
            return
        assert isinstance(answer.records, memoryview)
        assert reader.fetch_offset is not None
        fetched = Fetched(
            reader.target,
            answer.records,
            reader.fetch_offset,
            aborted=(answer.aborted_transactions or ()) if committed else None,
            check_crcs=self._rules.check_crcs,
            stop_offset=reader.stop_offset,
        )
        if fetched.holds_nothing_whole:
            reader.problem = ClientError(
                f"{reader.target}: the answer holds no whole batch at offset {reader.fetch_offset}",
                "raise max.partition.fetch.bytes, or look at the broker's log",
            )
            return
        reader.ahead.append(fetched)

    def _refused(self, reader: Reader, code: int, now_ms: int) -> None:
        asked_a_follower, reader.replica = reader.replica is not None, None
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            problem = broker_error(code, f"{reader.target} at offset {reader.offset}")
            if asked_a_follower or reader.ahead:  # the leader tells, or when the reader has come there
                self._pause(reader, problem, now_ms)
            elif self._reset is not None:
                reader.seek(self._reset)
            else:
                reader.problem = problem
            return
        problem = broker_error(code, str(reader.target))
        if error_code(code) in _STALE_LEADER:
            self.wants_metadata = True
        if problem.retriable:
            self._pause(reader, problem, now_ms)
        else:
            reader.problem = problem

    def _pause(self, reader: Reader, error: ClientError, now_ms: int) -> None:
        reader.trouble = error
        reader.failures += 1
        reader.not_before_ms = now_ms + self._backoff.pause_ms(reader.failures)

    def next_ms(self, now_ms: int, idle_ms: int) -> int:
        """Milliseconds until a paused partition may be fetched again."""
        soonest = now_ms + idle_ms
        for reader in self.readers.values():
            if reader.not_before_ms > now_ms:
                soonest = min(soonest, reader.not_before_ms)
        return max(soonest - now_ms, 0)

    @property
    def trouble(self) -> ClientError | None:
        """Why a partition gives nothing, of one that somebody waits for."""
        waiting = (reader for reader in self.readers.values() if not reader.is_paused and not reader.ahead)
        return next((reader.trouble for reader in waiting if reader.trouble is not None), None)

    # -- records -------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether all partitions have come to their stops."""
        return bool(self.readers) and all(reader.is_at_stop for reader in self.readers.values())

    def collect(self, count: int) -> list[ConsumedRecord]:
        """The next records in memory, at most `count`, of one partition after the other. Raises problems."""
        wanted = _Objects(count)
        self._collect(wanted)
        return wanted.records

    def fill(self, columns: Columns) -> None:
        """The same into columns, until they are full."""
        self._collect(_Rows(columns))

    def _collect(self, wanted: _Objects | _Rows) -> None:
        for _ in range(len(self._order)):
            target = self._order[0]
            reader = self.readers[target]
            if not reader.is_paused:
                self._collect_from(reader, wanted)
            if wanted.is_full:
                break
            self._order.rotate(-1)

    @staticmethod
    def _collect_from(reader: Reader, wanted: _Objects | _Rows) -> None:
        while reader.ahead and not wanted.is_full:
            fetched = reader.ahead[0]
            try:
                wanted.draw(fetched)
            except ClientError:
                if wanted.is_empty:
                    raise
                return
            reader.offset = fetched.offset
            if fetched.is_used_up:
                reader.offset = fetched.end_offset
                reader.ahead.popleft()
        if reader.problem is not None and wanted.is_empty and not reader.ahead:
            raise reader.problem


class _Objects:
    """Records that somebody wants as objects."""

    def __init__(self, count: int) -> None:
        self.records: list[ConsumedRecord] = []
        self._count = count

    @property
    def is_empty(self) -> bool:
        return not self.records

    @property
    def is_full(self) -> bool:
        return len(self.records) >= self._count

    def draw(self, fetched: Fetched) -> None:
        self.records += fetched.take(self._count - len(self.records))


class _Rows:
    """Records that somebody wants as columns."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    @property
    def is_empty(self) -> bool:
        return not self._columns.rows

    @property
    def is_full(self) -> bool:
        return self._columns.is_full

    def draw(self, fetched: Fetched) -> None:
        fetched.fill(self._columns)
