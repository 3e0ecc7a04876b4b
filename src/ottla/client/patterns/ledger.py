"""Idempotent consuming, strong: a business id is written to a ledger in the very transaction of its work.

    ledger = Ledger()
    with connection:                                         # the user's own transaction
        if ledger.first_time(connection, "billing", order_id):
            connection.execute("UPDATE accounts …")

Work and id are committed together or not at all, so a record that comes again finds its id and does nothing.
Another worker with the same id waits for the first one's transaction. Never commits by itself.
"""

from __future__ import annotations

from typing import Any

from ottla.client.patterns.statements import execute, table_name


class Ledger:
    def __init__(self, table: str = "ottla_ledger") -> None:
        self._table = table_name(table)

    def create(self, connection: Any) -> None:
        """Makes the table where there is none; the caller commits."""
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self._table} (consumer VARCHAR(200) NOT NULL, "
            "id VARCHAR(200) NOT NULL, at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (consumer, id))",
        )

    def first_time(self, connection: Any, consumer: str, business_id: str) -> bool:
        """Whether nobody has done this yet; from now on it is done, if the transaction commits."""
        cursor = execute(
            connection,
            f"INSERT INTO {self._table} (consumer, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (consumer, business_id),
        )
        return bool(cursor.rowcount == 1)
