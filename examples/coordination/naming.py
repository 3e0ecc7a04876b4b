"""Names for what has an address, and numbers that are given only once.

naming.py register SERVICE ADDRESS    the address is found under the name while this process runs
naming.py find SERVICE                prints the addresses that there are
naming.py number                      prints a number that nobody else was given
"""

from __future__ import annotations

import sys
import threading

from connection import connect, say
from kazoo.client import KazooClient

NAMES = "/examples/names"
NUMBERS = "/examples/numbers"


def register(client: KazooClient, service: str, address: str) -> None:
    client.create(f"{NAMES}/{service}/at-", address.encode(), ephemeral=True, sequence=True, makepath=True)
    say(f"{service} is at {address}")
    threading.Event().wait()


def find(client: KazooClient, service: str) -> None:
    client.ensure_path(f"{NAMES}/{service}")
    for name in sorted(client.get_children(f"{NAMES}/{service}")):
        address, _ = client.get(f"{NAMES}/{service}/{name}")
        say(address.decode())


def number(client: KazooClient) -> None:
    """The parent counts; the node itself is not needed any more."""
    path = client.create(f"{NUMBERS}/n-", sequence=True, makepath=True)
    client.delete(path)
    say(str(int(path.rpartition("-")[2])))


if __name__ == "__main__":
    zookeeper = connect()
    match sys.argv[1:]:
        case ["register", service, address]:
            register(zookeeper, service, address)
        case ["find", service]:
            find(zookeeper, service)
        case ["number"]:
            number(zookeeper)
    zookeeper.stop()
