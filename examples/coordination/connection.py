"""Connects to the ZooKeeper that the examples use, and prints lines that tests and people can follow."""

from __future__ import annotations

import os

from kazoo.client import KazooClient

SESSION_SECONDS = float(os.environ.get("SESSION_SECONDS", "4"))  # a process that dies is missed after that


def connect() -> KazooClient:
    client = KazooClient(os.environ.get("ZOOKEEPER", "127.0.0.1:2181"), timeout=SESSION_SECONDS)
    client.start()
    return client


def say(text: str) -> None:
    print(text, flush=True)
