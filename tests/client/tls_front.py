"""A server that ends TLS before a real broker: what clients of an encrypted cluster meet."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from client.certificates import Authority
from ottla.testing import BrokerProcess


class TlsFront:
    """Takes encrypted connections on `port`, and passes what they say to `backend`."""

    def __init__(self, identity: Path) -> None:
        """`identity`: a PEM file with the key and certificate that clients are shown."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(identity)
        self.backend = ("", 0)
        self.port = 0
        self._is_ready = threading.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self._serving: list[asyncio.Task[None]] = []

    @property
    def bootstrap(self) -> str:
        return f"localhost:{self.port}"

    @contextmanager
    def running(self) -> Iterator[TlsFront]:
        thread = threading.Thread(target=asyncio.run, args=(self._listen(),))
        thread.start()
        self._is_ready.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._is_over.set)
            thread.join()

    async def _listen(self) -> None:
        self._loop, self._is_over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        await self._is_over.wait()
        server.close()
        for writer in self._writers:  # of clients that outlive this server, as Spark's workers do
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        near, far = await asyncio.open_connection(*self.backend)
        self._writers += [writer, far]
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.append(serving)
        await asyncio.gather(_pump(reader, far), _pump(near, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def encrypted_broker(authority: Authority, *, asks_who: bool = False) -> Iterator[TlsFront]:
    """A broker that can only be reached through TLS; `asks_who`: by clients that the authority has signed."""
    front = TlsFront(authority.sign("broker", "DNS:localhost"))
    if asks_who:
        front.context.load_verify_locations(authority.certificate)
        front.context.verify_mode = ssl.CERT_REQUIRED
    with front.running():
        settings = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": f"PLAINTEXT://localhost:{front.port}",
            "group.initial.rebalance.delay.ms": "0",
        }
        with BrokerProcess(settings=settings) as broker:
            host, _, port = broker.bootstrap.rpartition(":")
            front.backend = (host, int(port))
            yield front
