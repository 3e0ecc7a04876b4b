"""Half messages with check-back: a message that is seen only when the business change beside it is certain.

    halves = HalfMessages()
    half = halves.prepare(producer, "orders", b"…", key=b"7")    # durable, and nobody sees it
    business.do_something(half.id)                               # wherever: no SQL database is needed
    half.commit()                                                # or half.roll_back()

    HalfMessageRelay(halves, check, bootstrap).run(stop)         # somewhere, once or many times

Who prepared a message and died says nothing more: the relay then asks `check(half)`, which looks at the
business and answers True (deliver it), False (forget it), or None (not known yet: it is asked again, for
ever). An answer is final: do not say False while the change may still come.

How exactly once: all halves, decisions and the relay's own marks are records of one partition. The relay
delivers in a Kafka transaction that also writes the mark and commits how far everything is settled. Whoever
takes over reads from there to the end before it does anything. Readers want isolation.level=read_committed.
Order: as decided. Where the business is an SQL database, `outbox` is simpler: it needs no check.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin_values import GroupMetadata
from ottla.client.consumer import Consumer
from ottla.client.errors import TopicExists
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer
from ottla.client.settings import common_of
from ottla.model.topics import TopicPartition

_KIND, _TOPIC, _KEY = "half.kind", "half.topic", "half.key"
_PREPARED, _COMMIT, _ROLL_BACK, _SETTLED = b"prepared", b"commit", b"rollback", b"settled"
_POLL_SECONDS = 0.2
_SETTLED_KEPT = 1_000  # records of settled halves that wait for their deletion

log = logging.getLogger(__name__)

Header = tuple[str, bytes | None]


@dataclass
class Half:
    """For who prepared it."""

    id: str
    _halves: HalfMessages
    _producer: Producer

    def commit(self) -> None:
        """It will be delivered. Returns when that is durable."""
        self._halves.decide(self._producer, self.id, commit=True)

    def roll_back(self) -> None:
        self._halves.decide(self._producer, self.id, commit=False)


@dataclass
class Undecided:
    """For who is asked about it."""

    id: str
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    offset: int  # where it is
    ask_at: float  # by the monotonic clock
    decision: bool | None = None


class HalfMessages:
    def __init__(self, topic: str = "ottla.half-messages") -> None:
        self.topic = topic

    def create(self, admin: Admin) -> None:
        """The topic, where there is none: one partition, whose records stay until they are settled."""
        with suppress(TopicExists):
            admin.create_topic(self.topic, partitions=1, configs={"retention.ms": "-1"})

    def prepare(
        self,
        producer: Producer,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Iterable[Header] = (),
    ) -> Half:
        """Returns when it is durable. Raises when it may not be: then do not begin the business change."""
        half = Half(uuid.uuid4().hex, self, producer)
        marks = [(_KIND, _PREPARED), (_TOPIC, str(topic).encode()), (_KEY, key)]
        self._write(producer, half.id, value, [*marks, *headers])
        return half

    def decide(self, producer: Producer, half_id: str, *, commit: bool) -> None:
        """For who knows the id only: another process, say."""
        self._write(producer, half_id, None, [(_KIND, _COMMIT if commit else _ROLL_BACK)])

    def _write(self, producer: Producer, half_id: str, value: bytes | None, headers: list[Header]) -> None:
        producer.send(self.topic, value, half_id.encode(), partition=0, headers=headers).result()


class HalfMessageRelay:
    """One relay of a name works; a newer one fences it. `check` is called in the thread of `run`."""

    def __init__(
        self,
        halves: HalfMessages,
        check: Callable[[Undecided], bool | None],
        bootstrap: str,
        *,
        name: str = "half-messages",
        check_seconds: float = 10.0,
        **settings: Any,
    ) -> None:
        """`check_seconds`: how long nobody decides until `check` is asked, and until it is asked again."""
        self._halves = halves
        self._check = check
        self._bootstrap = bootstrap
        self._group = name
        self._check_seconds = check_seconds
        self._settings = settings
        self._place = TopicPartition(halves.topic, 0)
        self._undecided: dict[str, Undecided] = {}

    def run(self, stop: threading.Event) -> None:
        """Delivers what is decided, until `stop` is set. Raises ProducerFenced when another takes over."""
        with (
            Admin(self._bootstrap, **common_of(self._settings)) as admin,
            Producer(self._bootstrap, transactional_id=self._group, **self._settings) as producer,
            Consumer(
                self._bootstrap,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                **common_of(self._settings),
            ) as consumer,
        ):
            self._take_over(admin, producer, consumer)
            deleted = 0
            while not stop.is_set():
                self._take(consumer.poll(_POLL_SECONDS))
                settled = self._settle(producer, consumer)
                if settled - deleted >= _SETTLED_KEPT:
                    admin.delete_records({self._place: settled})
                    deleted = settled

    def _take_over(self, admin: Admin, producer: Producer, consumer: Consumer) -> None:
        """Fences whoever was before, and learns what it has settled."""
        self._halves.create(admin)
        producer.init_transactions()  # ends or waits for what the one before has begun
        committed = admin.group_offsets(self._group, require_stable=True).get(self._place)
        consumer.assign({self._place: "start" if committed is None else committed.offset})
        (end,) = admin.latest_offsets([self._place], read_committed=True).values()
        self._undecided = {}
        while consumer.position(self._place) < end:
            self._take(consumer.poll(_POLL_SECONDS))

    def _take(self, records: list[ConsumedRecord]) -> None:
        for record in records:
            headers = dict(record.headers)
            kind, half_id = headers.get(_KIND), (record.key or b"").decode(errors="replace")
            if kind == _PREPARED:
                self._undecided[half_id] = Undecided(
                    half_id,
                    (headers[_TOPIC] or b"").decode(),
                    headers[_KEY],
                    record.value,
                    tuple(each for each in record.headers if each[0] not in (_KIND, _TOPIC, _KEY)),
                    record.offset,
                    time.monotonic() + self._check_seconds,
                )
            elif kind == _SETTLED:
                self._undecided.pop(half_id, None)
            elif kind in (_COMMIT, _ROLL_BACK) and half_id in self._undecided:
                self._undecided[half_id].decision = kind == _COMMIT

    def _settle(self, producer: Producer, consumer: Consumer) -> int:
        """Delivers and forgets what is decided by now; the offset before which everything is settled."""
        for half in self._undecided.values():
            if half.decision is None and half.ask_at <= time.monotonic():
                half.decision = self._asked(half)
                half.ask_at = time.monotonic() + self._check_seconds
        decided = [half for half in self._undecided.values() if half.decision is not None]
        left = [half.offset for half in self._undecided.values() if half.decision is None]
        settled = min(left, default=consumer.position(self._place))
        if not decided:
            return 0
        with producer.transaction():
            for half in decided:
                if half.decision:
                    producer.send(half.topic, half.value, half.key, headers=half.headers)
                mark = half.id.encode()
                producer.send(self._halves.topic, None, mark, partition=0, headers=[(_KIND, _SETTLED)])
            producer.send_offsets_to_transaction({self._place: settled}, GroupMetadata(self._group))
        for half in decided:
            del self._undecided[half.id]
        return settled

    def _asked(self, half: Undecided) -> bool | None:
        try:
            return self._check(half)
        except Exception:
            log.exception("the check of half message %s failed; it is asked again", half.id)
            return None
