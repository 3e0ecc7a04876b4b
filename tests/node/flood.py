"""A data plane under flood: a process that keeps many connections full of large requests."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from calls import produce_request
from ottla.protocol.apis import PRODUCE
from ottla.protocol.headers import encode_request

CONNECTIONS = 300
REQUEST_BYTES = 1_000_000


@contextmanager
def flooded(address: str) -> Iterator[None]:
    """While it lasts, the listener at `address` has always more to read than it can take."""
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_flood, args=(address, begun), daemon=True)
    process.start()
    try:
        assert begun.wait(30)
        yield
    finally:
        process.terminate()
        process.join(10)


def _flood(address: str, begun: object) -> None:
    host, _, port = address.rpartition(":")
    # Nobody has the topic: the broker reads, looks, and refuses, so that no disk is measured here.
    message = produce_request("nowhere", bytes(REQUEST_BYTES), acks=1)
    frame = b"".join(bytes(chunk) for chunk in encode_request(PRODUCE, 12, 1, "flood", message))  # type: ignore[arg-type]
    selector = selectors.DefaultSelector()
    sent: dict[socket.socket, int] = {}
    for _ in range(CONNECTIONS):
        peer = socket.create_connection((host, int(port)))
        peer.setblocking(False)
        selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)
        sent[peer] = 0
    total = 0
    while True:
        for key, events in selector.select():
            peer = key.fileobj
            assert isinstance(peer, socket.socket)
            if events & selectors.EVENT_READ:
                peer.recv(1 << 16)
            if events & selectors.EVENT_WRITE:
                count = peer.send(memoryview(frame)[sent[peer] :])
                sent[peer] = (sent[peer] + count) % len(frame)
                total += count
        if total > 20 * REQUEST_BYTES:
            begun.set()  # type: ignore[attr-defined]
