"""Floods a broker with small requests from many connections: `flood.py ADDRESS SECONDS`.

A process of its own, so that its hunger for the interpreter is not taken for the broker's slowness.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import sys
import time

CONNECTIONS = 40
_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def flood(address: str, seconds: float) -> None:
    host, port = address.rsplit(":", 1)
    block = _API_VERSIONS * 500
    with selectors.DefaultSelector() as selector:
        peers: dict[int, socket.socket] = {}
        for _ in range(CONNECTIONS):
            peer = socket.create_connection((host, int(port)))
            peer.setblocking(False)
            peers[peer.fileno()] = peer
            selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE, bytearray())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for key, _ in selector.select(0.1):
                peer, unsent = peers[key.fd], key.data
                with contextlib.suppress(BlockingIOError):
                    peer.recv(1 << 20)
                if not unsent:
                    unsent += block
                with contextlib.suppress(BlockingIOError):
                    del unsent[: peer.send(unsent)]


if __name__ == "__main__":
    flood(sys.argv[1], float(sys.argv[2]))
