"""The consumer: reads partitions in the caller's thread, fetching ahead while the caller works.

    with Consumer("localhost:9092", group_id="billing") as consumer:
        consumer.subscribe(["orders"])        # or: consumer.assign({TopicPartition("orders", 0): "start"})
        for record in consumer:
            ...

For one thread at a time: a call of a second one raises Misused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from types import TracebackType

from ottla.client.assignors import Assignor
from ottla.client.blocking import direct, exclusive
from ottla.client.cluster import Cluster
from ottla.client.consumer_calls import ConsumerCalls
from ottla.client.errors import ClientError
from ottla.client.fetched import ConsumedRecord
from ottla.client.forks import stays_with_its_process
from ottla.client.pulse import ThreadPulse

_POLL_SECONDS = 1.0


class Consumer:
    def __init__(
        self,
        bootstrap: str | Sequence[str] = "",
        *,
        strategy: Sequence[str | Assignor] = (),
        **settings: object,
    ) -> None:
        """`strategy` may have assignors of the user's own, in the place of partition.assignment.strategy."""
        self._user = threading.RLock()  # held during a call
        self._calls = ConsumerCalls(bootstrap, strategy, settings, Cluster, ThreadPulse)
        stays_with_its_process(self)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    close = exclusive(ConsumerCalls.close)

    @property
    def reads_committed(self) -> bool:
        """Whether open and aborted transactions are hidden (isolation.level)."""
        return self._calls.reads_committed

    @property
    def commits_itself(self) -> bool:
        """Whether `poll` commits (enable.auto.commit)."""
        return self._calls.commits_itself

    @property
    def resets_never(self) -> bool:
        """Whether auto.offset.reset is none."""
        return self._calls.resets_never

    @property
    def timeout_ms(self) -> int:
        """How long one call may take (default.api.timeout.ms)."""
        return self._calls.timeout_ms

    @property
    def problem(self) -> ClientError | None:
        """What keeps records from coming, as far as is known; None: there may simply be none."""
        return self._calls.problem

    def __iter__(self) -> Iterator[ConsumedRecord]:
        """Record after record, for ever. A commit within covers those that were handed out."""
        while True:
            record = self.one(_POLL_SECONDS)
            if record is not None:
                yield record

    subscribe = direct(ConsumerCalls.subscribe)
    listen = direct(ConsumerCalls.listen)
    unsubscribe = exclusive(ConsumerCalls.unsubscribe)
    commit = exclusive(ConsumerCalls.commit)
    commit_async = exclusive(ConsumerCalls.commit_async)
    committed = exclusive(ConsumerCalls.committed)
    group_metadata = direct(ConsumerCalls.group_metadata)
    positions = direct(ConsumerCalls.positions)
    assign = direct(ConsumerCalls.assign)
    assignment = direct(ConsumerCalls.assignment)
    seek = direct(ConsumerCalls.seek)
    seek_to_beginning = direct(ConsumerCalls.seek_to_beginning)
    seek_to_end = direct(ConsumerCalls.seek_to_end)
    position = exclusive(ConsumerCalls.position)
    beginning_offsets = exclusive(ConsumerCalls.beginning_offsets)
    end_offsets = exclusive(ConsumerCalls.end_offsets)
    offsets_for_times = exclusive(ConsumerCalls.offsets_for_times)
    lag = exclusive(ConsumerCalls.lag)
    end_offset = direct(ConsumerCalls.end_offset)
    at_end = direct(ConsumerCalls.at_end)
    pause = direct(ConsumerCalls.pause)
    resume = direct(ConsumerCalls.resume)
    one = exclusive(ConsumerCalls.one)
    poll = exclusive(ConsumerCalls.poll)
    poll_into = exclusive(ConsumerCalls.poll_into)
    poll_arrow = exclusive(ConsumerCalls.poll_arrow)
