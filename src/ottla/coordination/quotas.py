"""Quotas on the count and the bytes of a subtree, where ZooKeeper keeps them: below /zookeeper/quota.

A quota on /a is two nodes: /zookeeper/quota/a/zookeeper_limits says what is allowed, zookeeper_stats beside
it what is used. A soft limit is only complained of; a hard one (ZooKeeper 3.7) is kept. The usage is state
that follows from the changes, so it is never in a transaction.
"""

from __future__ import annotations

import logging
import re

from ottla.model.values import NamedTuple

logger = logging.getLogger(__name__)

QUOTA_ROOT = "/zookeeper/quota"
_LIMITS = "/zookeeper_limits"
_USAGE = "/zookeeper_stats"
_SEPARATORS = re.compile("[,;]+")


class Usage(NamedTuple):
    nodes: int  # the one with the quota among them
    size: int  # bytes of their data

    def plus(self, other: Usage) -> Usage:
        return Usage(self.nodes + other.nodes, self.size + other.size)

    def encode(self) -> bytes:
        return b"count=%d,bytes=%d" % self


NOTHING = Usage(0, 0)


def limits_path(prefix: str) -> str:
    return QUOTA_ROOT + prefix + _LIMITS


def usage_path(prefix: str) -> str:
    return QUOTA_ROOT + prefix + _USAGE


def limited_path(path: str) -> str | None:
    """The path that the limits node at `path` is for; None when it is something else."""
    return _between(path, _LIMITS)


def measured_path(path: str) -> str | None:
    """The path whose usage the node at `path` tells; None when it is something else."""
    return _between(path, _USAGE)


def _between(path: str, end: str) -> str | None:
    if path.startswith(QUOTA_ROOT) and path.endswith(end):
        return path[len(QUOTA_ROOT) : -len(end)] or None
    return None


class Quotas:
    """Which paths have a quota."""

    __slots__ = ("prefixes",)

    def __init__(self) -> None:
        self.prefixes: set[str] = set()

    def prefix_of(self, path: str) -> str | None:
        """The nearest node at or above `path` with a quota: only that one counts."""
        while path and path not in self.prefixes:
            path = path[: path.rfind("/")]
        return path or None


def decode_usage(data: bytes | None) -> Usage:
    values = _values(data)
    return Usage(values.get("count", 0), values.get("bytes", 0))


def exceeds(prefix: str, limits: bytes | None, before: Usage, added: Usage) -> bool:
    """Whether `added` would break a hard limit. Passing a soft one is logged, once each time it is passed."""
    values = _values(limits)
    after = before.plus(added)
    for kind, hard_name, old, new in (
        ("count", "countHardLimit", before.nodes, after.nodes),
        ("bytes", "byteHardLimit", before.size, after.size),
    ):
        soft, hard = values.get(kind, -1), values.get(hard_name, -1)
        if new <= old:
            continue
        if -1 < hard < new:
            return True
        if hard == -1 and -1 < soft < new and old <= soft:
            logger.warning("the quota of %s is exceeded: %s %d, limit %d", prefix, kind, new, soft)
    return False


def _values(data: bytes | None) -> dict[str, int]:
    """`count=5,bytes=-1=;byteHardLimit=9`. What is no number is left out: a quota must not break writes."""
    values: dict[str, int] = {}
    for pair in _SEPARATORS.split((data or b"").decode(errors="replace")):
        name, _, text = pair.partition("=")
        number = text.rstrip("=")
        if re.fullmatch(r"-?[0-9]{1,18}", number):
            values[name] = int(number)
    return values
