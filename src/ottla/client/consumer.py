"""The consumer: reads assigned partitions in the caller's thread, fetching ahead while the caller works.

    with Consumer("localhost:9092") as consumer:
        consumer.assign({TopicPartition("orders", 0): Start()})
        for record in consumer.poll(1.0):
            ...

For one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

from ottla.client import admin_offsets
from ottla.client.cluster import Cluster
from ottla.client.cluster_view import Broker
from ottla.client.errors import BrokerError, ClientError, Closed, ConnectionFailed, TimedOut, broker_error
from ottla.client.fetched import ConsumedRecord
from ottla.client.fetcher import Fetcher, FetchRules, Reader
from ottla.client.offset_spec import End, OffsetSpec, Start, parse_offset
from ottla.client.settings import CONSUMER_SETTINGS, load
from ottla.model.config_types import TypedValues
from ottla.model.topics import TopicPartition
from ottla.protocol.apis import FETCH
from ottla.protocol.fields import Message
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse

_VERSION_WITHOUT_IDS = 12
_VERSION_END = 32_767
_TURN_MS_MAX = 1_000
_LOOKUP_MS_MIN = 1_000  # what a poll without patience may still take to find out where to start

_RESETS: dict[str, OffsetSpec | None] = {"earliest": Start(), "latest": End(), "none": None}

Place = int | str | OffsetSpec


class Consumer:
    def __init__(self, bootstrap: str | Sequence[str], **settings: object) -> None:
        loaded = load(settings, CONSUMER_SETTINGS)
        self._cluster = Cluster(bootstrap, loaded)
        self._reset = _RESETS[loaded.text("auto.offset.reset")]
        self._rules = _rules(loaded)
        self._fetcher = Fetcher(self._rules, self._cluster.backoff, self._reset)
        self._timeout_ms = loaded.integer("default.api.timeout.ms")
        self._request_timeout_ms = loaded.integer("request.timeout.ms")
        self._poll_records_max = loaded.integer("max.poll.records")
        self._is_closed = False

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._cluster.close()

    # -- places --------------------------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicPartition] | Mapping[TopicPartition, Place]) -> None:
        """Reads exactly these from now on, from their places, or (without) from where auto.offset.reset says.

        A partition that was assigned before and is given no place goes on where it was.
        """
        places = partitions if isinstance(partitions, Mapping) else {}
        readers = []
        for target in map(TopicPartition._make, partitions):
            reader = self._fetcher.readers.get(target)
            if target in places:
                reader = Reader(target, self._parsed(places[target]))
            elif reader is None:
                reader = Reader(target, self._start())
            readers.append(reader)
        self._fetcher.assign(readers)
        self._cluster.metadata.want({reader.target.topic for reader in readers})

    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._fetcher.readers)

    def seek(self, partition: TopicPartition, place: Place) -> None:
        self._reader(partition).seek(self._parsed(place))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """These, or all that are assigned."""
        for partition in partitions or self.assignment():
            self.seek(partition, Start())

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        for partition in partitions or self.assignment():
            self.seek(partition, End())

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record that `poll` will return."""
        reader = self._reader(partition)
        if reader.offset is None:
            self._look_up(self._cluster.now_ms() + self._timeout_ms)
        assert reader.offset is not None
        return reader.offset

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

    # -- records -------------------------------------------------------------------------------------------

    def poll(self, timeout: float = 0.0) -> list[ConsumedRecord]:
        """The next records, as soon as there are some; none when `timeout` (seconds) is over."""
        if self._is_closed:
            raise Closed("the consumer is closed")
        deadline_ms = self._cluster.now_ms() + round(timeout * 1000)
        waited = False
        while True:
            self._fetch(deadline_ms)
            records = self._fetcher.collect(self._poll_records_max)
            now_ms = self._cluster.now_ms()
            if records:
                self._fetch(deadline_ms)  # the next answer travels while the caller works
                return records
            if waited and now_ms >= deadline_ms:
                return records
            wait_ms = min(
                self._cluster.tick(now_ms),
                self._fetcher.next_ms(now_ms, _TURN_MS_MAX),
                max(deadline_ms - now_ms, 0),
            )
            self._cluster.network.poll(wait_ms)
            waited = True

    def _fetch(self, deadline_ms: int) -> None:
        now_ms = self._cluster.now_ms()
        if any(reader.offset is None for reader in self._fetcher.readers.values()):
            self._try_look_up(max(deadline_ms, now_ms + _LOOKUP_MS_MIN))
        if self._fetcher.wants_metadata:
            self._fetcher.wants_metadata = False
            self._cluster.metadata.ask_again()
        self._raise_problems()
        self._cluster.tick(now_ms)
        for broker, request, turns in self._fetcher.requests(self._cluster.metadata.view, now_ms):
            self._send(broker, request, turns)

    def _send(self, broker: Broker, request: FetchRequest, turns: dict[TopicPartition, int]) -> None:
        names = dict(self._cluster.metadata.view.names)

        def take(result: Message | ClientError, _version: int) -> None:
            now_ms = self._cluster.now_ms()
            if isinstance(result, ClientError):
                self._fetcher.lost(broker.id, turns, now_ms)
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

    # -- lookups -------------------------------------------------------------------------------------------

    def _try_look_up(self, deadline_ms: int) -> None:
        try:
            self._look_up(deadline_ms)
        except (ConnectionFailed, TimedOut, BrokerError) as error:
            if not error.retriable:
                raise
            # the next poll tries again

    def _look_up(self, deadline_ms: int) -> None:
        """Finds the offsets of places that are not offsets yet."""
        searching = [reader for reader in self._fetcher.readers.values() if reader.place is not None]
        places = {reader.target: reader.place for reader in searching if reader.place is not None}
        offsets = admin_offsets.resolve(
            self._cluster, places, deadline_ms, read_committed=self._rules.read_committed
        )
        for reader in searching:
            reader.seek(offsets[reader.target])

    def _start(self) -> OffsetSpec:
        if self._reset is None:
            raise ClientError(
                "a partition is assigned without a place, and auto.offset.reset is none", "give one"
            )
        return self._reset

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


def _rules(loaded: TypedValues) -> FetchRules:
    return FetchRules(
        bytes_min=loaded.integer("fetch.min.bytes"),
        wait_ms=loaded.integer("fetch.max.wait.ms"),
        bytes_max=loaded.integer("fetch.max.bytes"),
        partition_bytes_max=loaded.integer("max.partition.fetch.bytes"),
        read_committed=loaded.text("isolation.level") == "read_committed",
        check_crcs=loaded.flag("check.crcs"),
    )
