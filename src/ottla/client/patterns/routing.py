"""Routing by key to many topics, as RabbitMQ's topic exchanges do.

    router = Router({"order.*.paid": ["billing"], "order.#": ["audit"]})
    router.send(producer, "order.eu.paid", b"…")          to billing and to audit

Words are separated by dots; `*` is exactly one word, `#` any number of them. A topic that several bindings
name gets the record once. Within a producer's transaction all topics get it, or none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ottla.client.delivery import SendFuture
from ottla.client.errors import ClientError
from ottla.client.producer import Producer

HEADER = "routing-key"


class Unroutable(ClientError):
    """No binding takes a routing key."""


class Router:
    def __init__(self, bindings: Mapping[str, Iterable[str]], unroutable: str | None = None) -> None:
        """`unroutable`: the topic for what no binding takes; without one `send` raises Unroutable."""
        self._bindings = [(_compiled(pattern), tuple(topics)) for pattern, topics in bindings.items()]
        self._unroutable = unroutable
        self.topics_for = lru_cache(maxsize=4_096)(self._topics_for)

    def _topics_for(self, routing_key: str) -> tuple[str, ...]:
        found = [
            topic
            for pattern, topics in self._bindings
            if pattern.fullmatch(f".{routing_key}")
            for topic in topics
        ]
        if not found and self._unroutable is not None:
            found = [self._unroutable]
        return tuple(dict.fromkeys(found))

    def send(
        self,
        producer: Producer,
        routing_key: str,
        value: Any,
        key: Any = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> list[SendFuture]:
        topics = self.topics_for(routing_key)
        if not topics:
            raise Unroutable(
                f"no binding takes {routing_key!r}", "add one, or name a topic for the unroutable"
            )
        all_headers = (*headers, (HEADER, routing_key.encode()))
        return [producer.send(topic, value, key, headers=all_headers) for topic in topics]


def _compiled(pattern: str) -> re.Pattern[str]:
    """For a key with a dot in front: each word brings its own, so that `#` may stand for no word at all."""
    parts = []
    for word in pattern.split("."):
        if word == "#":
            parts.append(r"(?:\.[^.]*)*")
        else:
            parts.append(r"\." + (r"[^.]+" if word == "*" else re.escape(word)))
    return re.compile("".join(parts))
