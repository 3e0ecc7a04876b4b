"""What a znode's `ephemeral_owner` says: its session, or the mark of a container or of a time to live."""

from __future__ import annotations

NO_SESSION = 0

CONTAINER = -(2**63)
"""The node goes when its last child has gone."""

TTL_MS_MAX = 2**40 - 1
_TTL_MARK = 0xFF << 56
_TWO_TO_64 = 2**64


def ttl_owner(ttl_ms: int) -> int:
    """Marks a node that goes when it has had no child and no change for `ttl_ms`; signed, as on the wire."""
    assert 0 < ttl_ms <= TTL_MS_MAX
    return (_TTL_MARK | ttl_ms) - _TWO_TO_64


def ttl_ms(owner: int) -> int | None:
    """None for a node without a TTL."""
    if -(1 << 56) <= owner < 0:
        return owner & TTL_MS_MAX
    return None


def is_session(owner: int) -> bool:
    """Whether the node is ephemeral. No session's number begins with the byte 0xff or is CONTAINER."""
    return owner != NO_SESSION and owner != CONTAINER and not -(1 << 56) <= owner < 0
