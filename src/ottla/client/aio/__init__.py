"""The clients for asyncio: the same names, settings and rules as the blocking ones, over the same core.

    async with Producer("localhost:9092") as producer, Consumer("localhost:9092", group_id="g") as consumer:
        await (await producer.send("orders", b"value"))
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Made inside a running loop, and used there. A client has at most one task of its own, and no thread.
"""

from __future__ import annotations

from ottla.client.aio.admin import Admin
from ottla.client.aio.consumer import Consumer
from ottla.client.aio.producer import Producer
from ottla.client.aio.worker_pool import WorkerPool

__all__ = ["Admin", "Consumer", "Producer", "WorkerPool"]
