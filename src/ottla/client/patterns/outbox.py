"""An outbox: a business change and its messages are committed together, and relayed to topics exactly once.

    outbox = Outbox()
    with connection:                                            # the user's own transaction
        connection.execute("INSERT INTO orders …")
        outbox.add(connection, "orders", value, key=order_id)

    OutboxRelay(outbox, connect, bootstrap).run(stop)           # somewhere, once or many times

How exactly once: the relay first gives the rows that are there a batch number, in the database. It then sends
that batch in a Kafka transaction which also commits the number, as an offset of the relay's group; then it
deletes the rows. After a crash the group's offset says whether the batch was sent. Batches are fixed before
they are sent, so that rows which commit later than their ids say are in a later batch, never skipped.

Two relays of one name: the newer one raises an epoch in the database and the producer's epoch in Kafka; the
older one is refused by both. Readers want isolation.level=read_committed. Order: by row id within a batch.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin_values import GroupMetadata
from ottla.client.errors import ClientError, TopicExists
from ottla.client.patterns.statements import execute, is_sqlite, table_name
from ottla.client.producer import Producer
from ottla.client.settings import common_of
from ottla.model.topics import TopicPartition

MARKER_TOPIC = "ottla.outbox"  # has no records: the relays' groups commit batch numbers under it
_ROWS_PER_BATCH = 500


class RelayFenced(ClientError):
    """A newer relay of the same name has taken over."""


class Outbox:
    def __init__(self, table: str = "ottla_outbox") -> None:
        self.table = table_name(table)

    def create(self, connection: Any) -> None:
        """Makes the tables where there are none; the caller commits."""
        sqlite = is_sqlite(connection)
        row_id = "INTEGER PRIMARY KEY AUTOINCREMENT" if sqlite else "BIGSERIAL PRIMARY KEY"
        blob = "BLOB" if sqlite else "BYTEA"
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.table} (id {row_id}, topic VARCHAR(249) NOT NULL, "
            f"key {blob}, value {blob}, headers TEXT NOT NULL, batch BIGINT)",
        )
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.table}_relay "
            "(name VARCHAR(200) PRIMARY KEY, epoch BIGINT NOT NULL, batch BIGINT NOT NULL)",
        )

    def add(
        self,
        connection: Any,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Part of the caller's transaction; never commits."""
        encoded = json.dumps([[name, data.hex()] for name, data in headers])
        execute(
            connection,
            f"INSERT INTO {self.table} (topic, key, value, headers) VALUES (?, ?, ?, ?)",
            (str(topic), key, value, encoded),
        )


class OutboxRelay:
    """`connect` gives a connection of its own. One relay per outbox works; others wait or are fenced."""

    def __init__(
        self,
        outbox: Outbox,
        connect: Callable[[], Any],
        bootstrap: str,
        name: str = "outbox",
        **settings: Any,
    ) -> None:
        self._table = outbox.table
        self._connect = connect
        self._bootstrap = bootstrap
        self._name = name
        self._settings = settings
        self._marker = TopicPartition(MARKER_TOPIC, 0)

    def run(self, stop: threading.Event, idle_seconds: float = 0.2) -> None:
        """Relays what is there and what comes, until `stop` is set. Raises RelayFenced or ProducerFenced."""
        with (
            closing(self._connect()) as connection,
            Producer(self._bootstrap, transactional_id=self._transactional_id, **self._settings) as producer,
        ):
            epoch = self._take_over(connection, producer)
            while not stop.is_set():
                if not self._relay_some(connection, producer, epoch):
                    stop.wait(idle_seconds)

    def drain(self) -> int:
        """Relays what is there now, and returns how many records that was."""
        with (
            closing(self._connect()) as connection,
            Producer(self._bootstrap, transactional_id=self._transactional_id, **self._settings) as producer,
        ):
            epoch = self._take_over(connection, producer)
            count = 0
            while sent := self._relay_some(connection, producer, epoch):
                count += sent
            return count

    @property
    def _transactional_id(self) -> str:
        return f"outbox-{self._name}"

    @property
    def _group(self) -> str:
        return f"outbox-{self._name}"

    # -- one turn ------------------------------------------------------------------------------------------

    def _take_over(self, connection: Any, producer: Producer) -> int:
        """Fences whoever was before, and forgets what it has sent."""
        execute(
            connection,
            f"INSERT INTO {self._table}_relay (name, epoch, batch) VALUES (?, 0, 0) ON CONFLICT DO NOTHING",
            (self._name,),
        )
        execute(connection, f"UPDATE {self._table}_relay SET epoch = epoch + 1 WHERE name = ?", (self._name,))
        (epoch,) = execute(
            connection, f"SELECT epoch FROM {self._table}_relay WHERE name = ?", (self._name,)
        ).fetchone()
        connection.commit()
        with Admin(self._bootstrap, **common_of(self._settings)) as admin:
            with suppress(TopicExists):
                admin.create_topic(MARKER_TOPIC, partitions=1)
            producer.init_transactions()  # ends or waits for what the one before has begun
            committed = admin.group_offsets(self._group, require_stable=True).get(self._marker)
        sent = 0 if committed is None else committed.offset
        execute(connection, f"DELETE FROM {self._table} WHERE batch <= ?", (sent,))
        connection.commit()
        return int(epoch)

    def _relay_some(self, connection: Any, producer: Producer, epoch: int) -> int:
        batch = self._next_batch(connection, epoch)
        if batch is None:
            return 0
        rows = execute(
            connection,
            f"SELECT topic, key, value, headers FROM {self._table} WHERE batch = ? ORDER BY id",
            (batch,),
        ).fetchall()
        connection.commit()
        with producer.transaction():
            for topic, key, value, headers in rows:
                producer.send(
                    topic,
                    None if value is None else bytes(value),
                    None if key is None else bytes(key),
                    headers=[(name, bytes.fromhex(data)) for name, data in json.loads(headers)],
                )
            producer.send_offsets_to_transaction({self._marker: batch}, GroupMetadata(self._group))
        execute(connection, f"DELETE FROM {self._table} WHERE batch = ?", (batch,))
        connection.commit()
        return len(rows)

    def _next_batch(self, connection: Any, epoch: int) -> int | None:
        """One that was fixed before and not sent, or a new one of the oldest rows; None: nothing is there."""
        (left,) = execute(
            connection, f"SELECT MIN(batch) FROM {self._table} WHERE batch IS NOT NULL"
        ).fetchone()
        (waiting,) = execute(connection, f"SELECT COUNT(*) FROM {self._table} WHERE batch IS NULL").fetchone()
        if left is None and not waiting:
            connection.commit()
            return None
        # Also for one that is left: whoever was fenced must not send it.
        step = 1 if left is None else 0
        cursor = execute(
            connection,
            f"UPDATE {self._table}_relay SET batch = batch + ? WHERE name = ? AND epoch = ?",
            (step, self._name, epoch),
        )
        if cursor.rowcount != 1:
            connection.rollback()
            raise RelayFenced(f"the relay {self._name!r} was taken over by a newer one", "let this one end")
        if left is not None:
            connection.commit()
            return int(left)
        (batch,) = execute(
            connection, f"SELECT batch FROM {self._table}_relay WHERE name = ?", (self._name,)
        ).fetchone()
        execute(
            connection,
            f"UPDATE {self._table} SET batch = ? WHERE id IN "
            f"(SELECT id FROM {self._table} WHERE batch IS NULL ORDER BY id LIMIT {_ROWS_PER_BATCH})",
            (batch,),
        )
        connection.commit()
        return int(batch)
