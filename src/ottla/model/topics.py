"""Topic names, topic ids and partitions: Kafka's rules, in one place."""

from __future__ import annotations

import base64
import os
import re
from typing import NewType

from ottla.model.values import NamedTuple

TopicId = NewType("TopicId", bytes)
"""Sixteen raw bytes; `topic_id_text` gives the form people and znodes use."""

NO_TOPIC_ID = TopicId(bytes(16))

TOPIC_NAME_LENGTH_MAX = 249  # a partition directory is `<topic>-<n>` and a deleted one adds a 33-byte suffix
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic, or None when it can."""
    if not name:
        return "a topic name must not be empty"
    if name in (".", ".."):
        return f"a topic must not be named {name!r}"
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        return f"a topic name has at most {TOPIC_NAME_LENGTH_MAX} characters, this one has {len(name)}"
    if not _LEGAL.match(name):
        return f"topic name {name!r} may only use ASCII letters, digits, '.', '_' and '-'"
    return None


def new_topic_id() -> TopicId:
    """A random id. One whose text starts with '-' would confuse command lines and is drawn again."""
    while True:
        raw = os.urandom(16)
        if raw not in (bytes(16), bytes(15) + b"\x01") and not topic_id_text(TopicId(raw)).startswith("-"):
            return TopicId(raw)


def topic_id_text(topic_id: TopicId) -> str:
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode("ascii")


def parse_topic_id(text: str) -> TopicId:
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a topic id: 22 characters of URL-safe base64 are expected"
        ) from error
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not a topic id: it holds {len(raw)} bytes instead of 16")
    return TopicId(raw)
