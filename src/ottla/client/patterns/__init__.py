"""Answers for duplicates, failures, pace and routing, each small and alone; they compose as plain calls.

They stand on producers and consumers and on what the user brings: a DB-API connection, a Redis client.
"""

from ottla.client.patterns.backlog import Backlog, backlog
from ottla.client.patterns.dead_letters import DeadLetters
from ottla.client.patterns.delays import Delays
from ottla.client.patterns.half_messages import HalfMessageRelay, HalfMessages
from ottla.client.patterns.ledger import Ledger
from ottla.client.patterns.outbox import Outbox, OutboxRelay, RelayFenced
from ottla.client.patterns.rate_limit import RateLimit
from ottla.client.patterns.retries import Retries
from ottla.client.patterns.routing import Router, Unroutable
from ottla.client.patterns.seen_ids import RedisSeenIds, SeenIds

__all__ = [
    "Backlog",
    "DeadLetters",
    "Delays",
    "HalfMessageRelay",
    "HalfMessages",
    "Ledger",
    "Outbox",
    "OutboxRelay",
    "RateLimit",
    "RedisSeenIds",
    "RelayFenced",
    "Retries",
    "Router",
    "SeenIds",
    "Unroutable",
    "backlog",
]
