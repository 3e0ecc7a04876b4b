"""Applications and relays that die by kill -9 at the moment they are told.

    python -m client.patterns.mortal_worker <role> <bootstrap> <topic> <database> <moment>

A moment is "before|after <call> <how many times>"; with "" the worker lives, and prints its moments.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from ottla.client import Producer
from ottla.client.patterns import HalfMessageRelay, HalfMessages, Outbox, OutboxRelay
from ottla.client.patterns.half_messages import Undecided

VALUES = range(5)

_times: Counter[str] = Counter()
_moment = ""


def pass_moment(name: str) -> None:
    _times[name] += 1
    moment = f"{name} {_times[name]}"
    sys.stdout.write(moment + "\n")
    sys.stdout.flush()
    if moment == _moment:
        os.kill(os.getpid(), signal.SIGKILL)


def mortal(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        pass_moment(f"before {name}")
        found = call(*arguments, **named)
        pass_moment(f"after {name}")
        return found

    return wrapped


def connect(path: str) -> sqlite3.Connection:
    class Connection(sqlite3.Connection):
        commit = mortal("database-commit", sqlite3.Connection.commit)

    Connection.__module__ = "sqlite3"
    return sqlite3.connect(path, timeout=30, factory=Connection)


def order(topic: str, path: str) -> None:
    """An order and its message."""
    connection = connect(path)
    connection.execute("INSERT INTO orders VALUES (1)")
    Outbox().add(connection, topic, b"1")
    connection.commit()
    connection.close()


def relay(bootstrap: str, topic: str, path: str) -> None:
    OutboxRelay(Outbox(), lambda: connect(path), bootstrap, name=topic).drain()


def half_order(bootstrap: str, topic: str, path: str) -> None:
    """An order in one place, its message prepared and committed around it."""
    with Producer(bootstrap) as producer:
        half = HalfMessages(f"{topic}.half").prepare(producer, topic, b"1")
        connection = connect(path)
        connection.execute("INSERT INTO orders VALUES (?)", (half.id,))
        connection.commit()
        connection.close()
        half.commit()


def half_relay(bootstrap: str, topic: str, path: str) -> None:
    """Until it has been asked about the half that says that it is the last."""
    stop = threading.Event()

    def check(half: Undecided) -> bool:
        if half.value == b"last":
            stop.set()
            return False
        connection = sqlite3.connect(path)
        found = connection.execute("SELECT 1 FROM orders WHERE id = ?", (half.id,)).fetchone()
        connection.close()
        return found is not None

    HalfMessageRelay(HalfMessages(f"{topic}.half"), check, bootstrap, name=topic, check_seconds=0.3).run(stop)


def main() -> None:
    global _moment
    role, bootstrap, topic, path, _moment = sys.argv[1:]
    for name in ("begin_transaction", "send", "send_offsets_to_transaction", "commit_transaction"):
        setattr(Producer, name, mortal(name, getattr(Producer, name)))
    if role == "order":
        order(topic, path)
    elif role == "relay":
        relay(bootstrap, topic, path)
    elif role == "half_order":
        half_order(bootstrap, topic, path)
    else:
        half_relay(bootstrap, topic, path)


if __name__ == "__main__":
    main()
