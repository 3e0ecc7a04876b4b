"""Spark's daemon, which starts its Python workers, with nothing to say when Spark ends an idle one.

Spark closes the connection of a worker that had no task for a minute. Over a Unix socket the worker's last
words then fail, and the daemon would print that as an error.
"""

from __future__ import annotations

from socket import socket

from pyspark import daemon

_work = daemon.worker


def worker(sock: socket, authenticated: bool) -> int:
    try:
        return _work(sock, authenticated)
    except BrokenPipeError:
        return 1  # nobody listens any more: the process ends


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
