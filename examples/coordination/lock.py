"""A lock by sequential ephemeral nodes, in which each waits only for the one before it.

    lock.py NAME SECONDS    takes the lock, holds it for so long, gives it back

A release wakes one process, not all that wait: nobody watches the lock itself.
"""

from __future__ import annotations

import sys
import threading
import time

from connection import connect, say
from kazoo.client import KazooClient

QUEUE = "/examples/lock"


def acquire(client: KazooClient, name: str) -> str:
    """Returns the path of our place in the queue, once it is the first."""
    place = client.create(f"{QUEUE}/place-", name.encode(), ephemeral=True, sequence=True, makepath=True)
    while True:
        queue = sorted(client.get_children(QUEUE))
        position = queue.index(place.rpartition("/")[2])
        if position == 0:
            return place
        before = f"{QUEUE}/{queue[position - 1]}"
        gone = threading.Event()
        if client.exists(before, watch=lambda _: gone.set()):  # noqa: B023 (called while this turn waits)
            say(f"{name} waits for {before.rpartition('/')[2]}")
            gone.wait()
            say(f"{name} is woken")


if __name__ == "__main__":
    zookeeper = connect()
    me, hold_seconds = sys.argv[1], float(sys.argv[2])
    mine = acquire(zookeeper, me)
    say(f"{me} holds the lock")
    time.sleep(hold_seconds)
    say(f"{me} gives it back")
    zookeeper.delete(mine)
    zookeeper.stop()
