"""A dead-letter topic: what cannot be handled goes there as it came, with the reason, and the rest goes on.

    dead = DeadLetters(producer)
    try: handle(record)
    except Exception as error: dead.send(record, error)

Key, value, headers and timestamp are the original's; headers are added that say where it was and why it is
here. `send` returns when the broker has it, so that the source may be committed.
"""

from __future__ import annotations

from ottla.client.errors import Misused
from ottla.client.fetched import ConsumedRecord
from ottla.client.producer import Producer

_SEND_SECONDS = 60
_REASON_CHARACTERS_MAX = 1_000

TOPIC = "dead-letter.topic"
PARTITION = "dead-letter.partition"
OFFSET = "dead-letter.offset"
REASON = "dead-letter.reason"
ERROR = "dead-letter.error"


class DeadLetters:
    def __init__(self, producer: Producer, topic: str | None = None) -> None:
        """Without a `topic` those of `orders` go to `orders.dead`."""
        self._producer = producer
        self._topic = topic

    def topic_for(self, source: str) -> str:
        return self._topic or f"{source}.dead"

    def send(self, record: ConsumedRecord, error: BaseException) -> None:
        for part in (record.key, record.value):
            if part is not None and not isinstance(part, bytes):
                raise Misused(
                    f"a dead letter is the original's bytes, not {type(part).__name__}",
                    "consume the topic by its plain name and decode in the handler",
                )
        headers = [each for each in record.headers if not each[0].startswith("dead-letter.")]
        headers += [
            (TOPIC, record.topic.encode()),
            (PARTITION, str(record.partition).encode()),
            (OFFSET, str(record.offset).encode()),
            (ERROR, type(error).__qualname__.encode()),
            (REASON, str(error)[:_REASON_CHARACTERS_MAX].encode()),
        ]
        self._producer.send(
            self.topic_for(record.topic),
            record.value,
            record.key,
            headers=headers,
            timestamp_ms=max(record.timestamp_ms, 0),
        ).result(_SEND_SECONDS)
