"""Configuration that many processes share and that changes while they run.

shared_configuration.py follow NAME      prints every configuration it sees, until it is stopped
shared_configuration.py set KEY VALUE    changes one value; whoever changes it at the same time is not lost
"""

from __future__ import annotations

import json
import sys
import threading

from connection import connect, say
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError

PATH = "/examples/configuration"


def follow(client: KazooClient, name: str) -> None:
    client.ensure_path(PATH)

    @client.DataWatch(PATH)
    def changed(data: bytes, _: object) -> None:
        say(f"{name} sees {data.decode() or '{}'}")

    threading.Event().wait()


def set_value(client: KazooClient, key: str, value: str) -> None:
    client.ensure_path(PATH)
    while True:
        data, stat = client.get(PATH)
        configuration = json.loads(data or b"{}") | {key: value}
        try:
            client.set(PATH, json.dumps(configuration).encode(), version=stat.version)
            return
        except BadVersionError:  # somebody else was faster: look again
            continue


if __name__ == "__main__":
    zookeeper = connect()
    if sys.argv[1] == "follow":
        follow(zookeeper, sys.argv[2])
    else:
        set_value(zookeeper, sys.argv[2], sys.argv[3])
        zookeeper.stop()
