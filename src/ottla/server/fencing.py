"""How a producer is told that another one has taken its place, by the version it speaks."""

from __future__ import annotations

from ottla.model.errors import ErrorCode


def fenced_code(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """`code`, or for PRODUCER_FENCED before `fenced_since` what clients knew then (KIP-588)."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
