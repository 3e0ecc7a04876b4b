"""One master: the process with the lowest number. When it dies, the next in line takes over.

election.py NAME    stands for election, and says what it became
"""

from __future__ import annotations

import sys
import threading

from connection import connect, say
from kazoo.client import KazooClient

CANDIDATES = "/examples/election"


def stand(client: KazooClient, name: str) -> None:
    """Returns when this process is the master."""
    mine = client.create(
        f"{CANDIDATES}/candidate-", name.encode(), ephemeral=True, sequence=True, makepath=True
    )
    while True:
        candidates = sorted(client.get_children(CANDIDATES))
        position = candidates.index(mine.rpartition("/")[2])
        if position == 0:
            return
        before = f"{CANDIDATES}/{candidates[position - 1]}"
        gone = threading.Event()
        if client.exists(before, watch=lambda _: gone.set()):  # noqa: B023 (called while this turn waits)
            say(f"{name} follows")
            gone.wait()


if __name__ == "__main__":
    zookeeper = connect()
    stand(zookeeper, sys.argv[1])
    say(f"{sys.argv[1]} is the master")
    threading.Event().wait()
