"""Subscriptions by regular expression: RE2's syntax and its promise, time linear in what is matched.

Python's own `re` can be made to run for ever by a few characters, so it is never used for a peer's pattern.
The engine is an optional part of the installation; without it such subscriptions are refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from ottla.model.errors import ErrorCode, Refused
from ottla.model.limits import PATTERN_LENGTH_MAX, PATTERN_MEMORY_BYTES_MAX


def matching_topics(pattern: str, topics: Iterable[str]) -> tuple[str, ...]:
    """Those whose whole name matches, sorted. Refused for what is no pattern."""
    matches = _compile(pattern).fullmatch
    return tuple(sorted(topic for topic in topics if matches(topic) is not None))


@lru_cache(maxsize=64)
def _compile(pattern: str) -> Any:
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise _invalid(f"it has {len(pattern)} characters, more than {PATTERN_LENGTH_MAX}")
    try:
        engine: Any = importlib.import_module("re2")
    except ImportError:
        raise _invalid(
            "this broker has no engine for them; install google-re2 on it, or subscribe by names"
        ) from None
    options = engine.Options()
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    options.log_errors = False
    try:
        return engine.compile(pattern, options)
    except engine.error as problem:
        reason = problem.args[0] if problem.args else problem
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise _invalid(text) from None


def _invalid(reason: str) -> Refused:
    return Refused(ErrorCode.INVALID_REGULAR_EXPRESSION, f"SubscribedTopicRegex: {reason}")
